"""The pages that teach: experiments with the product's own mechanisms, in a browser."""
