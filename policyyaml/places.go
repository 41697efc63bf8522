// SPDX-License-Identifier: Apache-2.0

package policyyaml

import (
	"bytes"
	"encoding/json"

	"github.com/metehq/mete/policyyaml/yamltree"
)

// A Place is a position in a file, counted from 1, columns in characters. The zero
// Place is nowhere.
type Place struct{ Line, Column int }

// Places returns where the paths, which are JSON Pointers, lead in the contents of
// the policy file called name, which [Parse] takes. What is not in the file is where
// the closest thing is that it would be in; an empty path is the whole file, and
// nowhere.
func Places(name string, data []byte, paths []string) map[string]Place {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	places := map[string]place{}
	if isJSON(name, data) {
		places = placesInJSON(data, paths)
	} else if root, err := yamltree.Parse(data); err == nil && root != nil {
		places = placesInYAML(root, paths)
	}
	found := map[string]Place{}
	for _, path := range paths {
		at := nearest(places, path)
		found[path] = Place{at.line, at.column}
	}
	return found
}

// placesInJSON returns the places of paths, and of what they are in, in valid JSON.
func placesInJSON(data []byte, paths []string) map[string]place {
	s := jsonScan{data: data, dec: json.NewDecoder(bytes.NewReader(data)), wanted: ancestry(paths), places: map[string]place{}}
	s.dec.UseNumber()
	s.value("", 0)
	return s.places
}

// placesInYAML returns the places of paths, and of what they are in.
func placesInYAML(root *yamltree.Node, paths []string) map[string]place {
	places := map[string]place{}
	for path := range ancestry(paths) {
		if at, ok := placeInYAML(root, path); ok {
			places[path] = at
		}
	}
	return places
}
