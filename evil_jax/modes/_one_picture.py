"""The one picture that a user asks about, or its regions: of an image id of the data folder, or of a file."""

import dataclasses
import pathlib

from evil_jax.data import features, load, objects, pictures

_PICTURES = {'.jpg', '.jpeg', '.png', '.gif', '.bmp', '.webp', '.tif', '.tiff'}


def regions(config, section: str, file_key: str, id_key: str):
    """(Regions, image id) that a section of the config names.

    Args:
      section: 'predict' or 'attribute'.
      file_key, id_key: its keys of the features file and of the image id; a file of one picture needs no id.

    Raises:
      ValueError: a picture where features are wanted, neither key is set, or no such image.
    """
    path, image_id = config[section][file_key], config[section][id_key]
    file_key, id_key = f'{section}.{file_key}', f'{section}.{id_key}'
    if pathlib.Path(path).suffix.lower() in _PICTURES:
        raise ValueError(_no_pictures(file_key, path, file_key))
    if not path and not image_id:
        raise ValueError(f'which picture? Set --config.{id_key}, or --config.{file_key} to a file of one')
    reader = features.open_features(path) if path else load.open_store(config)
    if not image_id:
        if len(reader) != 1:
            some = ', '.join(reader.ids()[:10])
            raise ValueError(
                f'{path} holds {len(reader)} images: set --config.{id_key} to one of {some}'
                + (' ...' if len(reader) > 10 else '')
            )
        image_id = reader.ids()[0]
    if image_id not in reader and pathlib.Path(image_id).suffix.lower() in _PICTURES:
        raise ValueError(_no_pictures(id_key, image_id, file_key))
    image_id = reader.resolve(image_id)
    found = reader[image_id]
    if config.data.objects and not found.names:  # a store knows them, other files may have them beside
        found = dataclasses.replace(found, names=objects.class_names([reader.path.parent]))
    return found, image_id


def picture(config, section: str, file_key: str, id_key: str):
    """(uint8 [H, W, 3], image id or name of the file) that a section of the config names.

    Args:
      section, file_key, id_key: as for `regions`; the file is a picture. Both keys may be the same: what it names is
        then a file, if there is one.

    Raises:
      ValueError: neither key is set, no such image, or not a readable picture.
    """
    path, image_id = config[section][file_key], config[section][id_key]
    if path and (file_key != id_key or pathlib.Path(path).is_file()):
        return pictures.read(path), pathlib.Path(path).name
    if not image_id:
        raise ValueError(f'which picture? Set --config.{section}.{id_key}, or --config.{section}.{file_key} to a file')
    return load.open_inputs(config)[image_id], image_id


def _no_pictures(key: str, value: str, file_key: str) -> str:
    return (
        f'{key} is the picture {value!r}, but this model reads region features, not pictures. Give a file with '
        f'them (--config.{file_key}) or an image id of the data folder; --mode=build makes such features of its '
        'pictures with --config.build.backbone'
    )
