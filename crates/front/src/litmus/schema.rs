//! The JSON schema of the TOML test format, generated from the table of keys that the reader uses.

use serde_json::{Map, Value, json};

use super::keys;
use crate::document::{TableKey, ValueShape};

/// The schema (JSON Schema, draft 2020-12).
pub fn schema() -> Value {
    let mut schema = object(keys::TEST, None);
    if let Value::Object(map) = &mut schema {
        map.insert(
            "$schema".to_string(),
            json!("https://json-schema.org/draft/2020-12/schema"),
        );
        map.insert("title".to_string(), json!("Fencepost litmus test"));
        map.insert(
            "description".to_string(),
            json!(
                "A litmus test, or a template for several tests. In templates, `${key}` in a \
                string is a placeholder."
            ),
        );
    }
    schema
}

fn object(keys: &[TableKey], open: Option<&ValueShape>) -> Value {
    let mut properties = Map::new();
    for key in keys {
        let mut value = shape(&key.shape);
        if let Value::Object(map) = &mut value {
            map.insert("description".to_string(), json!(key.doc));
        }
        properties.insert(key.name.to_string(), value);
    }
    let required: Vec<&str> = keys.iter().filter(|k| k.required).map(|k| k.name).collect();
    let mut object = Map::new();
    object.insert("type".to_string(), json!("object"));
    object.insert("properties".to_string(), Value::Object(properties));
    if !required.is_empty() {
        object.insert("required".to_string(), json!(required));
    }
    object.insert(
        "additionalProperties".to_string(),
        open.map_or(json!(false), shape),
    );
    Value::Object(object)
}

fn shape(of: &ValueShape) -> Value {
    match of {
        ValueShape::Text => json!({ "type": "string" }),
        ValueShape::Word(words) => json!({ "anyOf": [{ "enum": words }, placeholder()] }),
        ValueShape::Type(words) => {
            let structure =
                json!({ "type": "string", "pattern": "^(struct )?[A-Za-z_][A-Za-z0-9_]*$" });
            let class = json!({ "type": "string", "pattern": "::" });
            json!({ "anyOf": [{ "enum": words }, class, structure, placeholder()] })
        }
        ValueShape::Count => {
            json!({ "anyOf": [{ "type": "integer", "minimum": 0 }, placeholder()] })
        }
        ValueShape::Integer => json!({ "type": "integer" }),
        ValueShape::Bool => json!({ "type": "boolean" }),
        ValueShape::List(inner) => json!({ "type": "array", "items": shape(inner) }),
        ValueShape::Table(keys) => object(keys, None),
        ValueShape::Open(keys, other) => object(keys, Some(other)),
        ValueShape::OneOf(shapes) => {
            json!({ "anyOf": shapes.iter().map(shape).collect::<Vec<_>>() })
        }
    }
}

fn placeholder() -> Value {
    json!({ "type": "string", "pattern": "\\$\\{" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_in_the_schema_and_no_other_is_allowed() {
        let schema = schema();
        assert_eq!(schema["additionalProperties"], json!(false));
        for key in keys::TEST {
            assert_eq!(
                schema["properties"][key.name]["description"],
                json!(key.doc)
            );
        }
        assert_eq!(
            schema["properties"]["thread"]["items"]["required"],
            json!(["code"])
        );
    }
}
