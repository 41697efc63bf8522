// SPDX-License-Identifier: Apache-2.0

package policyyaml

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/metehq/mete/policyyaml/yamltree"
)

// A Place is a position in a file, counted from 1, columns in characters. The zero Place means no position.
type Place struct{ Line, Column int }

// Places returns the places of paths, which are JSON Pointers, in a policy file. name and data are as in [Parse]. A
// missing field has the place of the closest object that exists. An empty path, for the whole file, has no place.
func Places(name string, data []byte, paths []string) map[string]Place {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	places := map[string]Place{}
	if isJSON(name, data) {
		places = placesInJSON(data, paths)
	} else if root, err := yamltree.Parse(data); err == nil && root != nil {
		places = placesInYAML(root, paths)
	}
	found := map[string]Place{}
	for _, path := range paths {
		found[path] = nearest(places, path)
	}
	return found
}

func placesInJSON(data []byte, paths []string) map[string]Place {
	s := jsonScan{data: data, dec: json.NewDecoder(bytes.NewReader(data)), wanted: withParents(paths), places: map[string]Place{}}
	s.dec.UseNumber()
	s.scan("", 0)
	return s.places
}

func placesInYAML(root *yamltree.Node, paths []string) map[string]Place {
	places := map[string]Place{}
	for path := range withParents(paths) {
		if at, ok := placeInYAML(root, path); ok {
			places[path] = at
		}
	}
	return places
}

// placeInYAML returns the place of a path. A scalar is at its own place, and a mapping or sequence at the place of
// its key.
func placeInYAML(n *yamltree.Node, path string) (Place, bool) {
	at := Place{n.Line, n.Column}
	for rest := path; rest != ""; {
		var element string
		element, rest, _ = strings.Cut(rest[1:], "/")
		if rest != "" {
			rest = "/" + rest
		}
		n = n.Resolve()
		var next *yamltree.Node
		switch n.Kind {
		case yamltree.List:
			if i, err := strconv.Atoi(element); err == nil && i >= 0 && i < len(n.Items) {
				next = n.Items[i]
				at = Place{next.Line, next.Column}
			}
		case yamltree.Mapping:
			for _, f := range n.Fields {
				if pointerEscapes.Replace(f.Key.Value) == element {
					next, at = f.Value, Place{f.Key.Line, f.Key.Column}
					break
				}
			}
		}
		if next == nil {
			return Place{}, false
		}
		if n = next; n.Kind == yamltree.Scalar {
			at = Place{n.Line, n.Column}
		}
	}
	return at, true
}

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

func joinPath(path, key string) string { return path + "/" + pointerEscapes.Replace(key) }

func withParents(paths []string) map[string]bool {
	all := map[string]bool{}
	for _, path := range paths {
		for !all[path] {
			all[path] = true
			if i := strings.LastIndexByte(path, '/'); i >= 0 {
				path = path[:i]
			}
		}
	}
	return all
}

// nearest returns the place of path, or of its closest parent in the file.
func nearest(places map[string]Place, path string) Place {
	for {
		at, ok := places[path]
		i := strings.LastIndexByte(path, '/')
		if ok || i < 0 {
			return at
		}
		path = path[:i]
	}
}
