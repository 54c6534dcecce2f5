"""How dates are written on Chinese pages, where Django's way differs."""

DATETIME_FORMAT = "Y年n月j日 H:i e"
MONTH_DAY_FORMAT = "n月j日"
