from . import backbone as backbone
from . import claims as claims
from . import documents as documents
from . import evidence as evidence
from . import files as files
