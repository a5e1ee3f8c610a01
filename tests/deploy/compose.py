"""Checks a compose file against the schema of the compose specification: compose.py FILE SCHEMA"""

import json
import sys
from pathlib import Path

import jsonschema
import yaml

jsonschema.validate(yaml.safe_load(Path(sys.argv[1]).read_text()), json.loads(Path(sys.argv[2]).read_text()))
