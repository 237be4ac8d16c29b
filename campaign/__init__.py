"""A campaign of trials against Folio: kills, damaged files, hostile PDFs, swapped files, full disks. See
scripts/campaign.py."""
