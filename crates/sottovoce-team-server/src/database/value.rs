//! Values of statements and rows

/// A value. `Debug` shows of bytes their number alone.
#[derive(Clone, PartialEq, Eq)]
pub enum Value {
    /// No value.
    Null,
    /// A number.
    Int(i64),
    /// Bytes.
    Bytes(Vec<u8>),
    /// A list of bytes, for `IN_LIST`.
    List(Vec<Vec<u8>>),
}

impl std::fmt::Debug for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Null => f.write_str("Null"),
            Self::Int(number) => write!(f, "Int({number})"),
            Self::Bytes(bytes) => write!(f, "Bytes({} bytes)", bytes.len()),
            Self::List(list) => write!(f, "List({} values)", list.len()),
        }
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Int(number)
    }
}

impl From<Vec<u8>> for Value {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(bytes)
    }
}

impl<const N: usize> From<crate::api::Hex<N>> for Value {
    fn from(id: crate::api::Hex<N>) -> Self {
        Self::Bytes(id.as_bytes().to_vec())
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// A row of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row(pub Vec<Value>);

impl Row {
    /// The number in a column. 0 if there is none.
    pub fn int(&self, column: usize) -> i64 {
        self.maybe_int(column).unwrap_or_default()
    }

    /// The number in a column.
    pub fn maybe_int(&self, column: usize) -> Option<i64> {
        match self.0.get(column) {
            Some(Value::Int(number)) => Some(*number),
            _ => None,
        }
    }

    /// The bytes in a column.
    pub fn bytes(&self, column: usize) -> Option<&[u8]> {
        match self.0.get(column) {
            Some(Value::Bytes(bytes)) => Some(bytes),
            _ => None,
        }
    }

    /// Takes the bytes out of a column.
    pub fn take(&mut self, column: usize) -> Option<Vec<u8>> {
        match self.0.get_mut(column).map(|value| std::mem::replace(value, Value::Null)) {
            Some(Value::Bytes(bytes)) => Some(bytes),
            _ => None,
        }
    }
}
