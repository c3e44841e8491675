//! How values are written into columns, and read from them.

use std::error::Error;

use model::StackId;
use rusqlite::Row;
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, ValueRef};
use serde::de::value::{Error as TextError, StrDeserializer};
use serde::de::{DeserializeOwned, IntoDeserializer};
use serde::{Deserialize, Serialize};

/// 64 bits, as the signed integer that SQLite has: beyond 2^63 (addresses, hashes) a negative one.
pub(super) struct U64(pub u64);

impl ToSql for U64 {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(self.0.cast_signed().into())
    }
}

impl FromSql for U64 {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        value.as_i64().map(|n| U64(n.cast_unsigned()))
    }
}

pub(super) fn stack_key(stack: StackId) -> U64 {
    U64(stack.0)
}

pub(super) fn stack_at(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<StackId>> {
    Ok(row.get::<_, Option<U64>>(column)?.map(|id| StackId(id.0)))
}

/// A value whose serde form is a bare text: an account, a metric, a kind.
pub(super) struct Text<T>(pub T);

impl<T: Serialize> ToSql for Text<T> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        match serde_json::to_value(&self.0).map_err(unwritable)? {
            serde_json::Value::String(text) => Ok(text.into()),
            other => Err(unwritable(format!("{other} is not a text"))),
        }
    }
}

impl<T: DeserializeOwned> FromSql for Text<T> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let text: StrDeserializer<'_, TextError> = value.as_str()?.into_deserializer();
        T::deserialize(text).map(Text).map_err(FromSqlError::other)
    }
}

/// A value kept as JSON text.
pub(super) struct Json<T>(pub T);

impl<T: Serialize> ToSql for Json<T> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(serde_json::to_string(&self.0).map_err(unwritable)?.into())
    }
}

impl<T: for<'de> Deserialize<'de>> FromSql for Json<T> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        serde_json::from_str(value.as_str()?).map(Json).map_err(FromSqlError::other)
    }
}

fn unwritable(error: impl Into<Box<dyn Error + Send + Sync>>) -> rusqlite::Error {
    rusqlite::Error::ToSqlConversionFailure(error.into())
}
