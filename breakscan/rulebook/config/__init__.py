"""The settings, from configuration files and the command-line options."""

from breakscan.rulebook.config.errors import ConfigError
from breakscan.rulebook.config.nearest import NearestSettings, load_settings
from breakscan.rulebook.config.settings import REGIONS, WAYS, FileSettings, Regions, Settings, enabled_rules, library_of
from breakscan.rulebook.config.target import Target, check_targets, installed_torch, resolve_target

__all__ = [
    "REGIONS",
    "WAYS",
    "ConfigError",
    "FileSettings",
    "NearestSettings",
    "Regions",
    "Settings",
    "Target",
    "check_targets",
    "enabled_rules",
    "installed_torch",
    "library_of",
    "load_settings",
    "resolve_target",
]
