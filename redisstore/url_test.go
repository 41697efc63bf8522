// SPDX-License-Identifier: Apache-2.0

package redisstore_test

import (
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/redisstore"
)

func TestParseURL(t *testing.T) {
	for _, tt := range []struct {
		raw, addrs, user, password, master string
		db                                 int
		tls                                bool
	}{
		{raw: "redis://localhost", addrs: "localhost:6379"},
		{raw: "redis://localhost/", addrs: "localhost:6379"},
		{raw: "redis://h:1/7", addrs: "h:1", db: 7},
		{raw: "redis://[::1]", addrs: "[::1]:6379"},
		{raw: "redis://[::1]:80/1?", addrs: "[::1]:80", db: 1},
		{raw: "rediss://h", addrs: "h:6379", tls: true},
		{raw: "redis://u:p@h", addrs: "h:6379", user: "u", password: "p"},
		{raw: "redis://:p:q%40%2F%25@h", addrs: "h:6379", password: "p:q@/%"},
		{raw: "redis://%C3%BC:%20@h", addrs: "h:6379", user: "ü", password: " "},
		{raw: "redis+unix:///run/redis.sock", addrs: "/run/redis.sock"},
		{raw: "redis+unix://u:p@/run/a%20b?db=3", addrs: "/run/a b", user: "u", password: "p", db: 3},
		{raw: "redis+sentinel://a,b:2,[::1]:3/m", addrs: "a:26379 b:2 [::1]:3", master: "m"},
		{raw: "rediss+sentinel://:p@a/my%2Fm/2", addrs: "a:26379", password: "p", master: "my/m", db: 2, tls: true},
		{raw: "redis+cluster://a:1,b:2", addrs: "a:1 b:2"},
		{raw: "redis+cluster://a:1,b:2/", addrs: "a:1 b:2"},
	} {
		o, _, err := redisstore.ParseURL(tt.raw)
		if err != nil {
			t.Errorf("ParseURL(%q): %v", tt.raw, err)
			continue
		}
		if got := strings.Join(o.InitAddress, " "); got != tt.addrs || o.Username != tt.user || o.Password != tt.password ||
			o.SelectDB != tt.db || o.Sentinel.MasterSet != tt.master || (o.TLSConfig != nil) != tt.tls {
			t.Errorf("ParseURL(%q): addresses %q, user %q, password %q, database %d, master %q, TLS %v; want %+v",
				tt.raw, got, o.Username, o.Password, o.SelectDB, o.Sentinel.MasterSet, o.TLSConfig != nil, tt)
		}
		if !o.DisableCache || !o.DisableRetry {
			t.Errorf("ParseURL(%q): the client caches or retries", tt.raw)
		}
	}
}

func TestParseURL_Parameters(t *testing.T) {
	o, c, err := redisstore.ParseURL("redis+sentinel://a/m?lease_share=.25&timeout=250ms&prefix=shop%3A&sentinel_password=p%26&sentinel_username=u")
	if err != nil || c.Timeout != 250*time.Millisecond || c.LeaseShare != 0.25 || c.Prefix != "shop:" || o.Sentinel.Username != "u" || o.Sentinel.Password != "p&" {
		t.Errorf("got %+v, sentinel user %q, password %q, %v", c, o.Sentinel.Username, o.Sentinel.Password, err)
	}
	o, _, err = redisstore.ParseURL("rediss://10.0.0.1?server_name=redis.example")
	if err != nil || o.TLSConfig.ServerName != "redis.example" || o.TLSConfig.InsecureSkipVerify {
		t.Errorf("got %+v, %v; want the server's name checked", o.TLSConfig, err)
	}
}

func TestParseURL_Refuses(t *testing.T) {
	for _, tt := range []struct{ raw, want string }{
		{"", "must begin with redis://"},
		{"redis:h", "must begin with redis://"},
		{"redis:/secret@h", "must begin with redis://"},
		{"http://:secret@h", "must begin with redis://"},
		{"REDIS://h", "must begin with redis://"},
		{"redis+unix+sentinel://h", "must begin with redis://"},
		{"redis://", "is not a valid host"},
		{"redis:///1", "is not a valid host"},
		{"redis://:6379", "is not a valid host"},
		{"redis://::1", "is not a valid host"},
		{"redis://h:x", "is not a valid host"},
		{"redis://h:0", "between 1 and 65535"},
		{"redis://h:65536", "between 1 and 65535"},
		{"redis://a,b", "more than one host"},
		{"redis://h#secret", "must not contain #"},
		{"redis://u:sec ret@h", "or spaces"},
		{"redis://secret@h", "the password is missing"},
		{"redis://@h", "the password is missing"},
		{"redis://u:secret%zz@h", "must be percent-encoded"},
		{"redis://u:secret@x@h", "must be percent-encoded"},
		{"redis://u:sec/ret@h", "not a valid host"},
		{"redis://h/a", `database "a": must be a number`},
		{"redis://h/-1", `database "-1"`},
		{"redis://h/1/2", `database "1/2"`},
		{"redis://h/1?db=2", "write the database after the host"},
		{"redis://h?prefix=", "with a value"},
		{"redis://h?prefix=a&prefix=b", "once"},
		{"redis://h?prefix=%zz", "percent-encoded name=value pairs"},
		{"redis://h?timeout=1", `"1": must be a number`},
		{"redis://h?timeout=0s", "above 0"},
		{"redis://h?lease_share=0", "above 0, and 1 at most"},
		{"redis://h?lease_share=NaN", "above 0, and 1 at most"},
		{"redis://h?lease_share=1.1", "above 0, and 1 at most"},
		{"redis://h?pasword=secret", `unknown parameter "pasword": valid parameters are prefix, timeout, lease_share`},
		{"redis://h?sentinel_password=secret", "requires redis+sentinel://"},
		{"redis://h?ca=x", "use rediss instead of redis"},
		{"rediss://h?skip_verify=1", "always verified"},
		{"rediss://h?ca=/does/not/exist", "no such file"},
		{"rediss://h?ca=url_test.go", "no PEM certificate"},
		{"rediss://h?cert=x", "set both or neither"},
		{"rediss://h?cert=x&key=y", "no such file"},
		{"redis+unix://h/x", "without a host"},
		{"redis+unix://", "without a host"},
		{"redis+unix:///x?ca=y", `unknown parameter "ca"`},
		{"redis+sentinel://a", "followed by the name"},
		{"redis+sentinel://a/?prefix=x", "followed by the name"},
		{"redis+sentinel://a,,b/m", "is not a valid host"},
		{"redis+sentinel://a/m/x", `database "x"`},
		{"redis+sentinel://a/m?sentinel_username=u", "sentinel_password is missing"},
		{"redis+cluster://a/1", "only one database"},
		{"redis+cluster://a?db=1", "write the database after the host"},
	} {
		_, _, err := redisstore.ParseURL(tt.raw)
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("ParseURL(%q): %v, want an error with %q and no secret", tt.raw, err, tt.want)
		}
	}
}
