// SPDX-License-Identifier: Apache-2.0

package violations_test

import (
	"strings"
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/pgstore/violations"
)

// TestRecorder_ForeignText proves that any text from clients can be stored.
func TestRecorder_ForeignText(t *testing.T) {
	d := newDatabase(t)
	r := d.recorder(func(c *violations.Config) { c.Raw = true })
	long := strings.Repeat("x", 10_000)
	for _, tt := range []struct{ text, want string }{
		{"/plain", "/plain"},
		{`/a\b\N\.`, `/a\b\N\.`},
		{"/tab\tline\nreturn\r", "/tab%09line%0Areturn%0D"},
		{"/nul\x00", "/nul%00"},
		{"/\xff\xfe", "/%FF%FE"},
		{"/größe", "/gr%C3%B6%C3%9Fe"},
		{"/\u202egnp", "/%E2%80%AEgnp"},
		{"/\x1b[31m", "/%1B[31m"},
		{"/'; DROP TABLE x; --", "/'; DROP TABLE x; --"},
		{long[:255], long[:255]},
		{long[:256], long[:252] + "..."},
		{long, long[:252] + "..."},
		{long[:250] + "ö", long[:250] + "..."}, // and not half of it
		{long[:249] + "ö", long[:249] + "%C3%B6"},
		{strings.Repeat("ß", 200), strings.Repeat("%C3%9F", 42) + "..."},
	} {
		r.Record(t.Context(), denial("r", tt.text, mete.Attrs{"path": tt.text, "jwt:sub": tt.text, "ip:address": tt.text}))
		settle(t, r)
		got := one[string](d, "SELECT endpoint FROM "+d.table("")+" WHERE ip_address IS NULL ORDER BY violation_id DESC LIMIT 1")
		if got != tt.want {
			t.Errorf("the path %q: stored as %q, want %q", tt.text, got, tt.want)
		}
		if got := one[string](d, "SELECT user_id FROM "+d.table("")+" ORDER BY violation_id DESC LIMIT 1"); got != tt.want {
			t.Errorf("the user %q: stored as %q, want %q", tt.text, got, tt.want)
		}
		rows, err := d.reader().List(t.Context(), violations.Query{Key: tt.text, User: tt.text})
		if err != nil || len(rows) == 0 {
			t.Errorf("asked for %q: %d rows, %v", tt.text, len(rows), err)
		}
	}
	if s := r.Stats(); s.Dropped != 0 || s.Failed != 0 {
		t.Errorf("stats %+v, want nothing dropped", s)
	}
	r.Record(t.Context(), denial(long, long, nil))
	r.Record(t.Context(), denial("r", "", mete.Attrs{}))
	if s := settle(t, r); s.Dropped != 0 {
		t.Errorf("stats %+v, want nothing dropped", s)
	}
}

func TestNew_Refuses(t *testing.T) {
	d := newDatabase(t)
	for name, c := range map[string]violations.Config{
		"no key":        {},
		"an attribute":  {Raw: true, UserAttribute: "jwt"},
		"a retention":   {Raw: true, Retention: 1},
		"a window":      {Raw: true, Window: -1},
		"a long window": {Raw: true, Window: 1 << 50},
		"rows":          {Raw: true, MaxRows: -1},
		"a queue":       {Raw: true, MaxQueue: 1 << 30},
		"a timeout":     {Raw: true, Timeout: -1},
	} {
		if r, err := violations.New(d.pool, c); err == nil {
			t.Errorf("%s: no error", name)
			r.Close()
		}
	}
	if _, err := violations.New(nil, violations.Config{Raw: true}); err == nil {
		t.Error("without a pool: no error")
	}
	if _, err := violations.NewReader(nil, violations.Config{}); err == nil {
		t.Error("a reader without a pool: no error")
	}
	if _, err := violations.NewReader(d.pool, violations.Config{Timeout: -1}); err == nil {
		t.Error("a reader with a timeout below 0: no error")
	}
}
