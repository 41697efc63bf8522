// SPDX-License-Identifier: Apache-2.0

package dropin

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/metehq/mete/policyyaml/yamltree"
)

var decimal = regexp.MustCompile(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`)

// resolve returns the value of a scalar in YAML 1.1: nil, a bool, an int64, a uint64, a float64 or a string. The
// reference server reads YAML 1.1.
func resolve(n *yamltree.Node) any {
	if !n.Plain {
		return n.Value
	}
	switch n.Value {
	case "", "~", "null", "Null", "NULL":
		return nil
	case "y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON":
		return true
	case "n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF":
		return false
	case ".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF":
		return math.Inf(1)
	case "-.inf", "-.Inf", "-.INF":
		return math.Inf(-1)
	case ".nan", ".NaN", ".NAN":
		return math.NaN()
	}
	if !strings.ContainsAny(n.Value[:1], "+-.0123456789") {
		return n.Value
	}
	digits := strings.ReplaceAll(n.Value, "_", "")
	if v, err := strconv.ParseInt(digits, 0, 64); err == nil {
		return v
	}
	if v, err := strconv.ParseUint(digits, 0, 64); err == nil {
		return v
	}
	if decimal.MatchString(digits) {
		if v, err := strconv.ParseFloat(digits, 64); err == nil {
			return v
		}
	}
	return n.Value
}

func isText(n *yamltree.Node) bool {
	_, ok := resolve(n).(string)
	return ok
}

func kindOf(n *yamltree.Node) string {
	switch n.Kind {
	case yamltree.Mapping:
		return "mapping"
	case yamltree.List:
		return "list"
	}
	switch resolve(n).(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case int64, uint64, float64:
		return "number"
	}
	return "text"
}

// readText returns the text of a scalar. A number or boolean is its text in the file, and null is empty.
func (r *reader) readText(key string, n *yamltree.Node) (string, error) {
	v := n.Resolve()
	switch {
	case v.Kind != yamltree.Scalar:
		return "", r.place(n).fail("write "+key+": TEXT", "%s is a %s instead of text", key, kindOf(v))
	case v.IsNull():
		return "", nil
	}
	return v.Value, nil
}

func (r *reader) readBool(key string, n *yamltree.Node) (bool, error) {
	v := n.Resolve()
	if v.Kind == yamltree.Scalar {
		switch b := resolve(v).(type) {
		case bool:
			return b, nil
		case nil:
			return false, nil
		}
	}
	return false, r.place(n).fail("write true or false, without quotes", "%s is a %s instead of a boolean", key, kindOf(v))
}

func (r *reader) readCount(key string, n *yamltree.Node) (uint32, error) {
	v := n.Resolve()
	if v.Kind == yamltree.Scalar {
		switch number := resolve(v).(type) {
		case nil:
			return 0, nil
		case int64:
			if number >= 0 && number <= math.MaxUint32 {
				return uint32(number), nil
			}
			return 0, r.place(n).fail("write a whole number from 0 to 4294967295, or use unlimited", "%s: %d is out of range", key, number)
		}
	}
	return 0, r.place(n).fail("write a whole number from 0 to 4294967295, without quotes", "%s is a %s instead of a whole number", key, kindOf(v))
}

// readMetadata returns a mapping as a protobuf struct, or nil for an empty one.
func (r *reader) readMetadata(n *yamltree.Node) (*structpb.Struct, error) {
	v := n.Resolve()
	if v.IsNull() {
		return nil, nil
	}
	if v.Kind != yamltree.Mapping {
		return nil, r.place(n).fail("write KEY: VALUE", "metadata is a %s instead of a mapping", kindOf(v))
	}
	leave, err := r.enter(n)
	if err != nil {
		return nil, err
	}
	defer leave()
	fields := map[string]*structpb.Value{}
	if err := r.readMembers(n, fields, textOf); err != nil || len(fields) == 0 {
		return nil, err
	}
	return &structpb.Struct{Fields: fields}, nil
}

func (r *reader) readValue(n *yamltree.Node) (*structpb.Value, error) {
	leave, err := r.enter(n)
	if err != nil {
		return nil, err
	}
	defer leave()
	v := n.Resolve()
	switch v.Kind {
	case yamltree.List:
		list := &structpb.ListValue{}
		for _, item := range v.Items {
			value, err := r.readValue(item)
			if err != nil {
				return nil, err
			}
			list.Values = append(list.Values, value)
		}
		return structpb.NewListValue(list), nil
	case yamltree.Mapping:
		fields := map[string]*structpb.Value{}
		return structpb.NewStructValue(&structpb.Struct{Fields: fields}), r.readMembers(n, fields, valueText)
	}
	switch scalar := resolve(v).(type) {
	case bool:
		return structpb.NewBoolValue(scalar), nil
	case int64:
		return structpb.NewNumberValue(float64(scalar)), nil
	case uint64:
		return structpb.NewNumberValue(float64(scalar)), nil
	case float64:
		return structpb.NewNumberValue(scalar), nil
	case string:
		return structpb.NewStringValue(scalar), nil
	}
	return structpb.NewNullValue(), nil
}

// textOf returns the text of a key as the file has it.
func textOf(n *yamltree.Node) string { return n.Value }

// valueText returns the text of the value of a key. The reference server names nested fields of metadata so: the key y
// is the field "true", and 0x10 is "16".
func valueText(n *yamltree.Node) string { return fmt.Sprint(resolve(n)) }

// readMembers adds the fields of a mapping to fields. Fields of a merge key come first. The function nameOf returns the
// name of a field for its key.
func (r *reader) readMembers(n *yamltree.Node, fields map[string]*structpb.Value, nameOf func(*yamltree.Node) string) error {
	for _, merges := range []bool{true, false} {
		for _, field := range n.Resolve().Fields {
			key := field.Key.Resolve()
			if isMerge(field.Key) != merges {
				continue
			}
			if key.Kind != yamltree.Scalar {
				return r.place(field.Key).fail("write a text as the key", "a key of metadata is a %s", kindOf(key))
			}
			if !merges {
				value, err := r.readValue(field.Value)
				if err != nil {
					return err
				}
				fields[nameOf(key)] = value
				continue
			}
			if err := r.mergeMembers(field.Value, fields, nameOf); err != nil {
				return err
			}
		}
	}
	return nil
}

// mergeMembers adds the fields of the mapping of a merge key to fields.
func (r *reader) mergeMembers(n *yamltree.Node, fields map[string]*structpb.Value, nameOf func(*yamltree.Node) string) error {
	if n.Resolve().Kind != yamltree.Mapping {
		return r.place(n).fail("write <<: *ANCHOR", "the merge key << has no mapping")
	}
	leave, err := r.enter(n)
	if err != nil {
		return err
	}
	defer leave()
	return r.readMembers(n, fields, nameOf)
}
