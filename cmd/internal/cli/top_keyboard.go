// SPDX-License-Identifier: Apache-2.0

package cli

import "strings"

// Keys that are typed and are no letters.
const (
	keyCtrlC  = "\x03"
	keyCtrlD  = "\x04"
	keyEnter  = "\r"
	keyEscape = "escape"
	keyUp     = "up"
	keyDown   = "down"
)

// maxTyped bounds what is read at once: a key that is no letter comes as several bytes.
const maxTyped = 64

// typed sends the keys that are typed, and closes the channel in the end. It ends with
// the process: what is read from a terminal cannot be interrupted.
func (t *terminal) typed() <-chan string {
	if t.in == nil {
		return nil
	}
	keys := make(chan string)
	go func() {
		defer close(keys)
		var b [maxTyped]byte
		for {
			n, err := t.in.Read(b[:])
			for _, key := range keysIn(string(b[:n])) {
				keys <- key
			}
			if n == 0 || err != nil {
				return
			}
		}
	}()
	return keys
}

// keysIn reads the keys in what a terminal has sent. Those that it does not know are left
// out. An escape that ends it, or that no sequence begins with, is the key itself.
func keysIn(text string) (keys []string) {
	for text != "" {
		rest, isSequence := strings.CutPrefix(text, "\x1b")
		switch {
		case !isSequence:
			keys = append(keys, strings.Replace(text[:1], "\n", keyEnter, 1))
			text = text[1:]
		case rest == "" || rest[0] != '[' && rest[0] != 'O':
			keys = append(keys, keyEscape)
			text = rest
		default: // ECMA-48: parameters, and a letter that ends it
			end := strings.IndexFunc(rest[1:], func(r rune) bool { return r >= 0x40 && r <= 0x7e })
			if end < 0 {
				return keys
			}
			if key := map[string]string{"A": keyUp, "B": keyDown}[rest[1:end+2]]; key != "" {
				keys = append(keys, key)
			}
			text = rest[end+2:]
		}
	}
	return keys
}
