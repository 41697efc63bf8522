// SPDX-License-Identifier: Apache-2.0

package policyyaml

import "strings"

// A place is a position in a file, counted from 1. The zero place is nowhere.
type place struct{ line, column int }

// pointerEscapes writes a key as a component of a JSON Pointer (RFC 6901).
var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

func child(path, key string) string { return path + "/" + pointerEscapes.Replace(key) }

// ancestry returns the paths themselves and everything above them.
func ancestry(paths []string) map[string]bool {
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

// nearest returns the place of path or, where it is not in the file, of the
// closest thing it would be in.
func nearest(places map[string]place, path string) place {
	for {
		at, ok := places[path]
		i := strings.LastIndexByte(path, '/')
		if ok || i < 0 {
			return at
		}
		path = path[:i]
	}
}
