// SPDX-License-Identifier: Apache-2.0

package geoip_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/maxmind/mmdbwriter"
	"github.com/maxmind/mmdbwriter/mmdbtype"

	"github.com/metehq/mete/geoip"
	"github.com/metehq/mete/policy"
)

// writeMMDB writes an MMDB file with a record per network.
func writeMMDB(tb testing.TB, path, kind string, records map[string]mmdbtype.Map) {
	tb.Helper()
	tree, err := mmdbwriter.New(mmdbwriter.Options{DatabaseType: kind, IncludeReservedNetworks: true, BuildEpoch: 1_700_000_000})
	if err != nil {
		tb.Fatal(err)
	}
	for network, record := range records {
		_, parsed, err := net.ParseCIDR(network)
		if err != nil {
			tb.Fatal(err)
		}
		if err := tree.Insert(parsed, record); err != nil {
			tb.Fatal(err)
		}
	}
	var data bytes.Buffer
	if _, err := tree.WriteTo(&data); err != nil {
		tb.Fatal(err)
	}
	replaceFile(tb, path, data.Bytes())
}

// replaceFile replaces a file as downloaders do.
func replaceFile(tb testing.TB, path string, data []byte) {
	tb.Helper()
	if err := os.WriteFile(path+".new", data, 0o600); err != nil {
		tb.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		tb.Fatal(err)
	}
}

func country(code string) mmdbtype.Map {
	return mmdbtype.Map{"country": mmdbtype.Map{"iso_code": mmdbtype.String(code)}}
}

func asn(number uint32) mmdbtype.Map {
	return mmdbtype.Map{"autonomous_system_number": mmdbtype.Uint32(number), "autonomous_system_organization": mmdbtype.String("Example")}
}

func open(t *testing.T, c geoip.Config) *geoip.Database {
	t.Helper()
	db, err := geoip.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return db
}

func fact(t *testing.T, db *geoip.Database, name, address string) string {
	t.Helper()
	a, err := policy.ParseAttribute(name)
	if err != nil {
		t.Fatal(err)
	}
	value, ok := db.Find(a, address)
	if ok != (value != "") {
		t.Errorf("%s of %s: %q, %t", name, address, value, ok)
	}
	return value
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	c := geoip.Config{Country: filepath.Join(dir, "country.mmdb"), ASN: filepath.Join(dir, "asn.mmdb"), TorExits: filepath.Join(dir, "exits.txt")}
	writeMMDB(t, c.Country, "GeoLite2-Country", map[string]mmdbtype.Map{
		"192.0.2.0/25": country("DE"), "192.0.2.128/25": {"registered_country": mmdbtype.Map{"iso_code": mmdbtype.String("US")}}, "2001:db8::/32": country("JP")})
	writeMMDB(t, c.ASN, "GeoLite2-ASN", map[string]mmdbtype.Map{"192.0.2.0/24": asn(64500), "2001:db8::/32": asn(4_200_000_000)})
	replaceFile(t, c.TorExits, []byte("# Tor exits\nExitNode 0011\nPublished 2026-01-01 00:00:00\nExitAddress 192.0.2.7 2026-01-01 01:00:00\r\n\n198.51.100.9 # note\n2001:db8::9\n"))
	db := open(t, c)
	for _, tc := range []struct{ address, country, asn, tor string }{
		{"192.0.2.7", "DE", "64500", "true"},
		{"::ffff:192.0.2.7", "DE", "64500", "true"},
		{"192.0.2.200", "", "64500", "false"}, // a record without a country
		{"198.51.100.9", "", "", "true"},
		{"2001:db8::9", "JP", "4200000000", "true"},
		{"2001:db8::a%eth0", "JP", "4200000000", "false"},
		{"203.0.113.1", "", "", "false"},
		{"", "", "", ""},
		{"192.0.2", "", "", ""},
		{"192.0.2.1:80", "", "", ""},
	} {
		if got := fact(t, db, "ip:country", tc.address); got != tc.country {
			t.Errorf("country of %s is %q, want %q", tc.address, got, tc.country)
		}
		if got := fact(t, db, "ip:asn", tc.address); got != tc.asn {
			t.Errorf("asn of %s is %q, want %q", tc.address, got, tc.asn)
		}
		if got := fact(t, db, "ip:tor", tc.address); got != tc.tor {
			t.Errorf("tor of %s is %q, want %q", tc.address, got, tc.tor)
		}
	}
	if got := fact(t, db, "ua:bot", "192.0.2.7") + fact(t, db, "ip:address", "192.0.2.7"); got != "" {
		t.Errorf("other attributes have the value %q", got)
	}
}

// Files of other publishers have other names for the same facts, and one file may have both.
func TestFind_OtherPublishers(t *testing.T) {
	for name, record := range map[string]mmdbtype.Map{
		"flat":  {"country_code": mmdbtype.String("de"), "asn": mmdbtype.String("AS64500")},
		"plain": {"country": mmdbtype.String("DE"), "asn": mmdbtype.Uint32(64500)},
	} {
		path := filepath.Join(t.TempDir(), name+".mmdb")
		writeMMDB(t, path, name, map[string]mmdbtype.Map{"192.0.2.0/24": record})
		db := open(t, geoip.Config{Country: path, ASN: path})
		if country, asn := fact(t, db, "ip:country", "192.0.2.1"), fact(t, db, "ip:asn", "192.0.2.1"); country != "DE" || asn != "64500" {
			t.Errorf("%s: country %q, asn %q", name, country, asn)
		}
		if fact(t, db, "ip:tor", "192.0.2.1") != "" {
			t.Errorf("%s: ip:tor has a value without a list", name)
		}
	}
}

func TestOpen_Errors(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		replaceFile(t, path, []byte(text))
		return path
	}
	countries := filepath.Join(dir, "country.mmdb")
	writeMMDB(t, countries, "Example-Country", map[string]mmdbtype.Map{"192.0.2.0/24": country("DE")})
	for want, c := range map[string]geoip.Config{
		"no file: set Country, ASN or TorExits":                       {},
		"interval is 1ms: must be between 10ms and 24h":               {Country: countries, Interval: time.Millisecond},
		"download the file, or correct the setting":                   {Country: filepath.Join(dir, "absent.mmdb")},
		"text.mmdb: not an MMDB file":                                 {Country: write("text.mmdb", "hello")},
		`country.mmdb: the records of "Example-Country" have no such`: {ASN: countries},
		`exits.txt: line 2: "x.example" is no address`:                {TorExits: write("exits.txt", "192.0.2.1\nx.example\n")},
		"empty.txt: no addresses":                                     {TorExits: write("empty.txt", "# none\n")},
	} {
		if db, err := geoip.Open(c); err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "geoip: ") {
			t.Errorf("Open(%+v) = %v, %v; want an error with %q", c, db, err, want)
		}
	}
}

// A replaced file becomes active as a whole. An invalid file changes nothing and is logged once.
func TestReload(t *testing.T) {
	path := filepath.Join(t.TempDir(), "country.mmdb")
	writeMMDB(t, path, "v1", map[string]mmdbtype.Map{"192.0.2.0/24": country("DE")})
	var log lines
	db := open(t, geoip.Config{Country: path, Interval: 10 * time.Millisecond, Logger: slog.New(slog.NewTextHandler(&log, nil))})

	replaceFile(t, path, []byte("truncated"))
	log.wait(t, "cannot read geoip file, keeping the last valid one")
	if got := fact(t, db, "ip:country", "192.0.2.1"); got != "DE" {
		t.Errorf("after an invalid file: country %q, want the last valid one", got)
	}
	if err := db.Reload(t.Context()); err == nil {
		t.Error("Reload of an invalid file succeeds")
	}
	writeMMDB(t, path, "v2", map[string]mmdbtype.Map{"192.0.2.0/24": country("FR")})
	log.wait(t, "type=v2")
	if got := fact(t, db, "ip:country", "192.0.2.1"); got != "FR" {
		t.Errorf("after a new file: country %q, want FR", got)
	}
	if err := db.Reload(t.Context()); err != nil {
		t.Errorf("Reload: %v", err)
	}
}

// lines is a log that tests can wait for.
type lines struct {
	mu   sync.Mutex
	text string
	more chan struct{}
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text += string(p)
	if l.more != nil {
		close(l.more)
		l.more = nil
	}
	return len(p), nil
}

func (l *lines) wait(t *testing.T, want string) {
	t.Helper()
	for {
		l.mu.Lock()
		done := strings.Contains(l.text, want)
		if l.more == nil {
			l.more = make(chan struct{})
		}
		more := l.more
		l.mu.Unlock()
		if done {
			return
		}
		select {
		case <-more:
		case <-t.Context().Done():
			t.Fatalf("no line with %q", want)
		}
	}
}

func Example() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	exits := filepath.Join(dir, "exits.txt")
	if err := os.WriteFile(exits, []byte("192.0.2.7\n"), 0o600); err != nil {
		panic(err)
	}
	db, err := geoip.Open(geoip.Config{TorExits: exits})
	if err != nil {
		panic(err)
	}
	defer db.Close()
	matcher, err := policy.Load([]byte(`{"rules": [{"name": "tor", "limit_keys": [], "match": {"ip:tor": true},
		"algorithm_config": {"rate": "10/1m", "burst": 10}}]}`), policy.Options{Facts: policy.Facts{Find: db.Find}})
	if err != nil {
		panic(err)
	}
	for _, address := range []string{"192.0.2.7", "192.0.2.8"} {
		matches, _ := matcher.Match(nil, policy.Map{"ip:address": address}, 0, 0)
		fmt.Println(address, len(matches))
	}
	// Output:
	// 192.0.2.7 1
	// 192.0.2.8 0
}

func BenchmarkFind(b *testing.B) {
	path := filepath.Join(b.TempDir(), "country.mmdb")
	writeMMDB(b, path, "Country", map[string]mmdbtype.Map{"192.0.2.0/24": country("DE")})
	db, err := geoip.Open(geoip.Config{Country: path})
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	a, err := policy.ParseAttribute("ip:country")
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		db.Find(a, "192.0.2.1")
	}
}
