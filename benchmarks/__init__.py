"""The consumer measured beside Powertools for AWS Lambda (Python), in one run: `make bench`.

Both sides are measured as they are deployed, from their zips, with the same boto3 and botocore (`sides`). Each
measurement is made in a process of its own (`worker`, `probe`), the two sides taking turns, since machines are noisy:
what is reported is the median, and for a ratio the median of the turns' ratios.
"""
