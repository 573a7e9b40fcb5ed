"""What is on a page, for tests to look at."""

import html.parser


class Page(html.parser.HTMLParser):
    """Tags with their attributes, and the texts of scripts and styles."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.inside, self.words = [], {'script': [], 'style': []}, []
        self._open = None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag in self.inside:
            self.inside[tag].append('')
            self._open = tag

    def handle_endtag(self, tag):
        if tag == self._open:
            self._open = None

    def handle_data(self, data):
        if self._open:
            self.inside[self._open][-1] += data
        else:
            self.words.append(data)

    @property
    def text(self):
        return ' '.join(' '.join(self.words).split())
