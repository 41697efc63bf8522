// SPDX-License-Identifier: Apache-2.0

package respapi

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// mostHeld is the largest buffer of a parser.
const mostHeld = MaxCommandBytes + maxLineBytes + 4

// parse feeds data to a parser in pieces of at most n bytes, and returns its commands and its error as text.
func parse(t *testing.T, data []byte, n int, known bool) string {
	p := parser{buf: make([]byte, 16), known: known}
	var text strings.Builder
	for {
		for {
			args, err := p.next()
			if err != "" {
				fmt.Fprintf(&text, "error %q", string(err))
				return text.String()
			}
			if args == nil {
				break
			}
			fmt.Fprintf(&text, "%q\n", args)
		}
		if len(data) == 0 {
			fmt.Fprintf(&text, "%d left, empty %v", p.end-p.start, p.isEmpty())
			return text.String()
		}
		space := p.space()
		if len(space) == 0 || len(p.buf) > mostHeld {
			t.Fatalf("%d bytes of space in a buffer of %d", len(space), len(p.buf))
		}
		read := copy(space[:min(n, len(space))], data)
		p.end += read
		data = data[read:]
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"*1\r\n$9223372036854775807\r\nx\r\n", // it ended a process with redcon
		"*3\r\n$3\r\nSET\r\n$1\r\nx\r\n$5\r\nhello\r\nPING\r\n", "\r\n\n*-10\r\n*0\r\n*1\r\n$0\r\n\r\n", "*20000000\r\n",
		"*1\r\nfoo\r\n", "*1\r\n$-10\r\n", "*1\r\n$blabla\r\n", "*01\r\n", "*+1\r\n", "*-0\r\n", "$1\r\nx\r\n",
		`ECHO "a\x41\n\"b" 'it\'s' c` + "\r\n", "ECHO \"open\r\n", "ECHO 'a'b\r\n", "a\x00b \x00c\r\n", "\x00*\x00\n",
		"*2\r\n$4\r\nECHO\r\n$2\r\n\r\n\r\n", "*1\rx$4\ryPINGzz", "CL.THROTTLE k 15 30 60\n",
	} {
		f.Add([]byte(seed), uint8(1), true)
		f.Add([]byte(seed), uint8(3), false)
	}
	f.Fuzz(func(t *testing.T, data []byte, n uint8, known bool) {
		whole := parse(t, bytes.Clone(data), len(data)+1, known)
		if parts := parse(t, bytes.Clone(data), int(n)+1, known); parts != whole {
			t.Errorf("in parts of %d bytes:\n%s\nas a whole:\n%s", int(n)+1, parts, whole)
		}
	})
}

func TestParse_Bounds(t *testing.T) {
	word := func(n int) string { return fmt.Sprintf("$%d\r\n%s\r\n", n, strings.Repeat("x", n)) }
	for _, tt := range []struct {
		what, text string
		known      bool
		want       string
	}{
		{"the most arguments", "*1024\r\n", true, "7 left"},
		{"too many arguments", "*1025\r\n", true, `error "invalid multibulk length"`},
		{"too many words", strings.Repeat("x ", 1025) + "\n", true, `error "invalid multibulk length"`},
		{"too long an argument", "*1\r\n$65537\r\n", true, `error "invalid bulk length"`},
		{"too long a command", "*3\r\n" + word(65536) + word(65000) + word(2000), true, `error "too big multibulk request"`},
		{"an endless line", strings.Repeat("x", 65537), true, `error "too big inline request"`},
		{"a long line", strings.Repeat("x", 65537) + "\n", true, `error "too big inline request"`},
		{"an endless count", "*" + strings.Repeat("1", 65537), true, `error "too big mbulk count string"`},
		{"an endless length", "*1\r\n$" + strings.Repeat("1", 65537), true, `error "too big bulk count string"`},
		{"a stranger's arguments", "*11\r\n", false, `error "unauthenticated multibulk length"`},
		{"a stranger's words", "1 2 3 4 5 6 7 8 9 10 11\n", false, `error "unauthenticated multibulk length"`},
		{"a stranger's argument", "*1\r\n$16385\r\n", false, `error "unauthenticated bulk length"`},
		{"a stranger's command", "*3\r\n" + word(16000) + word(16000) + word(16000), false, `error "too big multibulk request"`},
		{"a stranger's line", strings.Repeat("x", 16385), false, `error "too big inline request"`},
	} {
		for _, n := range []int{1000, 1 << 20} {
			got := parse(t, []byte(tt.text), n, tt.known)
			if !strings.HasPrefix(got, tt.want) {
				t.Errorf("%s: got %.100s, want %s", tt.what, got, tt.want)
			}
		}
	}
}

// A slow sender must not cost more than a fast one: the parser searches every byte once.
func TestParse_Resumes(t *testing.T) {
	p := parser{buf: make([]byte, 16), known: true}
	for i := range maxLineBytes {
		p.space()[0] = 'x'
		p.end++
		if args, err := p.next(); args != nil || err != "" {
			t.Fatalf("after %d bytes: %q, %v", i, args, err)
		}
		if p.searched != i+1 {
			t.Fatalf("after %d bytes the parser has searched %d", i+1, p.searched)
		}
	}
}

func TestParseInt(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "7": 7, "-7": -7, "9223372036854775807": 1<<63 - 1, "-9223372036854775808": -1 << 63} {
		if got, ok := parseInt([]byte(text)); !ok || got != want {
			t.Errorf("%s: got %d, %v", text, got, ok)
		}
	}
	for _, text := range []string{"", "-", "-0", "00", "01", "+1", " 1", "1 ", "1.0", "x", "9223372036854775808", "-9223372036854775809", "99999999999999999999"} {
		if got, ok := parseInt([]byte(text)); ok {
			t.Errorf("%q: got %d, want an error", text, got)
		}
	}
}
