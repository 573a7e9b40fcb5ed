"""A ResNet in PyTorch under the parameter names of torchvision and timm (conv1, layer3.5.bn2, downsample.1, fc)."""

import torch
from torch import nn


class Bottleneck(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        inner = outputs // 4
        self.conv1, self.bn1 = nn.Conv2d(inputs, inner, 1, bias=False), nn.BatchNorm2d(inner)
        self.conv2 = nn.Conv2d(inner, inner, 3, stride=stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(inner)
        self.conv3, self.bn3 = nn.Conv2d(inner, outputs, 1, bias=False), nn.BatchNorm2d(outputs)
        self.downsample = None
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x):
        y = self.bn1(self.conv1(x)).relu()
        y = self.bn2(self.conv2(y)).relu()
        y = self.bn3(self.conv3(y))
        return (y + (x if self.downsample is None else self.downsample(x))).relu()


class Twin(nn.Module):
    """In evaluation mode, with random statistics. `forward` gives the grid [n, D, h, w]."""

    def __init__(self, size, classes=5, seed=0):
        super().__init__()
        torch.manual_seed(seed)
        self.conv1 = nn.Conv2d(3, size.stem, 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(size.stem)
        inputs = size.stem
        for s, (depth, width) in enumerate(zip(size.depths, size.widths)):
            blocks = [Bottleneck(width if b else inputs, width, 2 if s and not b else 1) for b in range(depth)]
            setattr(self, f'layer{s + 1}', nn.Sequential(*blocks))
            inputs = width
        self.fc = nn.Linear(inputs, classes)
        randomise(self)
        self.eval()

    def forward(self, x):
        x = nn.functional.max_pool2d(self.bn1(self.conv1(x)).relu(), 3, 2, 1)
        return self.layer4(self.layer3(self.layer2(self.layer1(x))))


def randomise(module) -> None:
    """Statistics and scales that a normalisation must not ignore or exchange."""
    for part in module.modules():
        if isinstance(part, nn.BatchNorm2d):
            for tensor, low, high in (
                (part.weight.data, 0.5, 1.5), (part.bias.data, -0.3, 0.3),
                (part.running_mean, -0.3, 0.3), (part.running_var, 0.5, 2.0),
            ):  # fmt: skip
                tensor.uniform_(low, high)
