// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// checkMembers rejects objects in data with a duplicate member, or with a member that struct t does not have in
// the same case. encoding/json accepts both, so a reader could see a different value than the server. data must
// be valid JSON for t.
func checkMembers(data []byte, t reflect.Type) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	return checkValue(d, t, "")
}

// checkValue checks one value. A nil type accepts any members, each once.
func checkValue(d *json.Decoder, t reflect.Type, path string) error {
	token, err := d.Token()
	if err != nil {
		return err
	}
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch token {
	case json.Delim('{'):
		seen := map[string]bool{}
		for d.More() {
			token, err := d.Token()
			if err != nil {
				return err
			}
			name, _ := token.(string)
			if seen[name] {
				return fmt.Errorf("duplicate member %s/%s; send it once", path, name)
			}
			seen[name] = true
			member, ok := memberOf(t, name)
			if !ok {
				return fmt.Errorf("unknown member %s/%s; names are case-sensitive", path, name)
			}
			if err := checkValue(d, member, path+"/"+name); err != nil {
				return err
			}
		}
		_, err = d.Token()
	case json.Delim('['):
		var item reflect.Type
		if t != nil && (t.Kind() == reflect.Slice || t.Kind() == reflect.Array) {
			item = t.Elem()
		}
		for i := 0; d.More(); i++ {
			if err := checkValue(d, item, path+"/"+strconv.Itoa(i)); err != nil {
				return err
			}
		}
		_, err = d.Token()
	}
	return err
}

// memberOf returns the type of a member, or nil if any type is valid.
func memberOf(t reflect.Type, name string) (member reflect.Type, ok bool) {
	switch {
	case t == nil:
		return nil, true
	case t.Kind() == reflect.Map:
		return t.Elem(), true
	case t.Kind() != reflect.Struct:
		return nil, true
	}
	for _, f := range reflect.VisibleFields(t) {
		if tag, _, _ := strings.Cut(f.Tag.Get("json"), ","); tag == name && !f.Anonymous {
			return f.Type, true
		}
	}
	return nil, false
}
