"""XML that every reader takes."""

from __future__ import annotations

import re
from typing import TextIO
from xml.etree import ElementTree

_NO_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def write_xml(root: ElementTree.Element, stream: TextIO) -> None:
    """Writes a document, ASCII only, and a line end.  Characters that XML cannot hold become U+FFFD."""
    for element in root.iter():
        element.attrib = {key: _NO_XML.sub("\ufffd", value) for key, value in element.attrib.items()}
        element.text = element.text and _NO_XML.sub("\ufffd", element.text)
    ElementTree.indent(root)
    stream.write(ElementTree.tostring(root, encoding="us-ascii", xml_declaration=True).decode("ascii") + "\n")
