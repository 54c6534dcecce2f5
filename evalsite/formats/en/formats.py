"""How dates are written on English pages."""

DATE_FORMAT = "j M Y"
DATETIME_FORMAT = "j M Y, H:i e"
MONTH_DAY_FORMAT = "j M"
YEAR_MONTH_FORMAT = "M Y"
