"""Looks at the catalog that no read of rows needs: checks, histories, what goes on."""
