"""The corpus that teaspoon learns from: one module a subject, each makes documents from a random generator."""
