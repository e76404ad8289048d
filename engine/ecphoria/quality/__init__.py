"""How well a model and a domain file fit: a checklist, measured without any store."""
