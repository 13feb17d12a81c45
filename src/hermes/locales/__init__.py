"""The translations: `.po` files, which people edit, and the `.mo` files that `scripts/translations.py` makes of them."""
