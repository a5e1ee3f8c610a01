"""Unpacks an OCI archive as a runtime does: unpack_image.py ARCHIVE FOLDER

Checks every digest and size, and writes the image's configuration to FOLDER.json.
"""

import gzip
import hashlib
import io
import json
import sys
import tarfile
from pathlib import Path


def main(path, folder):
    archive = tarfile.open(path)
    read = lambda name: archive.extractfile(name).read()

    def blob(descriptor):
        kind, digest = descriptor["digest"].split(":")
        content = read(f"blobs/{kind}/{digest}")
        assert kind == "sha256" and hashlib.sha256(content).hexdigest() == digest, descriptor
        assert len(content) == descriptor["size"], descriptor
        return content

    assert json.loads(read("oci-layout")) == {"imageLayoutVersion": "1.0.0"}
    (listed,) = json.loads(read("index.json"))["manifests"]
    manifest = json.loads(blob(listed))
    config = json.loads(blob(manifest["config"]))
    for descriptor, expected in zip(manifest["layers"], config["rootfs"]["diff_ids"], strict=True):
        layer = gzip.decompress(blob(descriptor))
        assert f"sha256:{hashlib.sha256(layer).hexdigest()}" == expected, descriptor
        tarfile.open(fileobj=io.BytesIO(layer)).extractall(folder, numeric_owner=True)
    Path(f"{folder}.json").write_text(json.dumps(config), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
