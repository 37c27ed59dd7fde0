//! Composite types: fields with names.

use crate::value::DataType;

/// A composite type.
#[derive(Debug, Clone, PartialEq)]
pub struct CompositeType {
    /// Its fields, in order.
    pub fields: Vec<Field>,
    /// The table whose rows have it; `None` for one of its own.
    pub table: Option<u32>,
}

/// A field of a composite type.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Its type.
    pub data_type: DataType,
    /// The type's modifier.
    pub typmod: i32,
}

impl CompositeType {
    /// The number of the field of this name, from 0.
    pub fn field_named(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|field| field.name == name)
    }

    /// The types of its fields.
    pub fn types(&self) -> impl Iterator<Item = DataType> + '_ {
        self.fields.iter().map(|field| field.data_type)
    }
}
