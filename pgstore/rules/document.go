// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
)

// An object is a JSON object with undecoded values.
type object map[string]json.RawMessage

// parseObject reads a JSON object. Empty text is {}.
func parseObject(text json.RawMessage) (object, error) {
	o := object{}
	if len(text) == 0 {
		return o, nil
	}
	if err := json.Unmarshal(text, &o); err != nil || o == nil {
		return object{}, fmt.Errorf("must be a JSON object")
	}
	return o, nil
}

// text returns a field's string, or "" if there is none.
func (o object) text(field string) (s string) {
	_ = json.Unmarshal(o[field], &s) // the compiler refuses a value of another type
	return s
}

func (o object) set(field string, value any) { o[field] = marshal(value) }

func marshal(value any) json.RawMessage {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(value) // a Buffer accepts all writes, and all values are valid JSON
	return bytes.TrimSpace(b.Bytes())
}

// sameJSON compares two JSON texts by value. Numbers are equal if their digits are equal.
func sameJSON(a, b json.RawMessage) bool { return reflect.DeepEqual(decode(a), decode(b)) }

// decode reads a JSON text and preserves the digits of numbers.
func decode(text json.RawMessage) (v any) {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	_ = dec.Decode(&v) // callers have validated the text
	return v
}

// textValues converts the numbers in match, and in other maps of attributes, to text. The meaning is the same,
// and PostgreSQL would change 1e1 to 10.
func textValues(v any, inside bool) any {
	switch v := v.(type) {
	case json.Number:
		if inside {
			return v.String()
		}
	case []any:
		for i := range v {
			v[i] = textValues(v[i], inside)
		}
	case map[string]any:
		for name := range v {
			v[name] = textValues(v[name], inside || name == "match" || name == "request" || name == "with" || name == "scope_value")
		}
	}
	return v
}
