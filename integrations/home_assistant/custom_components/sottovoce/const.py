"""Names of settings."""

DOMAIN = "sottovoce"

CONF_FOLDER = "folder"
CONF_KEY_FILE = "key_file"
CONF_SCOPE = "scope"

SCOPE_AREA, SCOPE_USER, SCOPE_ONE = SCOPES = ("area", "user", "one")

# The model's window in tokens. Half of it is for what was said, the rest for Home Assistant's instructions and functions.
NUM_CTX = 8192
# How long the model server may take to name its models.
TIMEOUT = 10
