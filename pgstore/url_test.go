// SPDX-License-Identifier: Apache-2.0

package pgstore_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/metehq/mete/pgstore"
)

// bare clears PostgreSQL's environment variables.
func bare(t *testing.T) {
	t.Helper()
	for _, name := range []string{"PGHOST", "PGPORT", "PGUSER", "PGPASSWORD", "PGDATABASE", "PGSSLMODE", "PGAPPNAME", "PGCONNECT_TIMEOUT", "PGTARGETSESSIONATTRS", "PGOPTIONS", "PGSERVICE"} {
		t.Setenv(name, "")
	}
	t.Setenv("HOME", t.TempDir()) // with no .pgpass
}

func TestParseURL(t *testing.T) {
	bare(t)
	for _, tt := range []struct{ raw, hosts, user, password, database string }{
		{raw: "postgres://u@localhost", hosts: "localhost:5432", user: "u"},
		{raw: "postgresql://u@localhost/", hosts: "localhost:5432", user: "u"},
		{raw: "postgres://u:p@h:1/d", hosts: "h:1", user: "u", password: "p", database: "d"},
		{raw: "postgres://u:p:q%40%2F%25@h/d%20e", hosts: "h:5432", user: "u", password: "p:q@/%", database: "d e"},
		{raw: "postgres://%C3%BC:+@h/d?", hosts: "h:5432", user: "ü", password: "+", database: "d"},
		{raw: "postgres://u@[::1]:80/d", hosts: "::1:80", user: "u", database: "d"},
		{raw: "postgres://u@[::1]/d", hosts: "::1:5432", user: "u", database: "d"},
		{raw: "postgres://u@a,b:2,[::1]:3/d", hosts: "a:5432 b:2 ::1:3", user: "u", database: "d"},
		{raw: "postgres:///d?host=/run/postgresql&user=u&port=7&password=a%2Bb+%20%26", hosts: "/run/postgresql:7", user: "u", password: "a+b+ &", database: "d"},
	} {
		o, _, err := pgstore.ParseURL(tt.raw)
		if err != nil {
			t.Errorf("ParseURL(%q): %v", tt.raw, err)
			continue
		}
		c := o.ConnConfig
		hosts := fmt.Sprintf("%s:%d", c.Host, c.Port)
		for _, f := range c.Fallbacks {
			if host := fmt.Sprintf("%s:%d", f.Host, f.Port); !strings.HasSuffix(hosts, host) { // sslmode=prefer lists each host twice
				hosts += " " + host
			}
		}
		if hosts != tt.hosts || c.User != tt.user || c.Password != tt.password || c.Database != tt.database {
			t.Errorf("ParseURL(%q): hosts %q, user %q, password %q, database %q; want %+v", tt.raw, hosts, c.User, c.Password, c.Database, tt)
		}
	}
}

func TestParseURL_Defaults(t *testing.T) {
	bare(t)
	o, config, err := pgstore.ParseURL("postgres://u@h/d")
	if err != nil {
		t.Fatal(err)
	}
	c := o.ConnConfig
	if fmt.Sprintf("%+v", config) != fmt.Sprintf("%+v", pgstore.Config{}) {
		t.Errorf("config %+v, want the zero one", config)
	}
	if c.ConnectTimeout != 2*time.Second || c.RuntimeParams["application_name"] != "mete" || len(c.RuntimeParams) != 1 ||
		c.ValidateConnect == nil {
		t.Errorf("timeout %v, settings %q, looks whether it can write %v", c.ConnectTimeout, c.RuntimeParams, c.ValidateConnect != nil)
	}
	if least := int32(pgstore.DefaultMaxInFlight + 4); o.MaxConns < least {
		t.Errorf("%d connections, want %d at least", o.MaxConns, least)
	}
}

func TestParseURL_Parameters(t *testing.T) {
	bare(t)
	o, config, err := pgstore.ParseURL("postgres://u@h/d?schema=limits&prefix=shop%3A&durable=true&timeout=250ms&max_batch=7&max_queue=8&max_in_flight=90")
	want := pgstore.Config{Schema: "limits", Prefix: "shop:", Durable: true, Timeout: 250 * time.Millisecond, MaxBatch: 7, MaxQueue: 8, MaxInFlight: 90}
	if err != nil || fmt.Sprintf("%+v", config) != fmt.Sprintf("%+v", want) {
		t.Fatalf("config %+v, %v; want %+v", config, err, want)
	}
	if o.MaxConns != 94 || len(o.ConnConfig.RuntimeParams) != 1 {
		t.Errorf("%d connections, settings %q; want 94, and none of ours", o.MaxConns, o.ConnConfig.RuntimeParams)
	}

	o, _, err = pgstore.ParseURL("postgres://u@h/d?application_name=a%20b&connect_timeout=7&pool_max_conns=2&target_session_attrs=any&default_query_exec_mode=exec" +
		"&sslmode=disable&options=-cgeqo%3Doff&durable=false")
	if err != nil {
		t.Fatal(err)
	}
	c := o.ConnConfig
	if c.RuntimeParams["application_name"] != "a b" || c.RuntimeParams["options"] != "-cgeqo=off" || c.ConnectTimeout != 7*time.Second ||
		o.MaxConns != 2 || c.ValidateConnect != nil || c.DefaultQueryExecMode != pgx.QueryExecModeExec || c.TLSConfig != nil {
		t.Errorf("settings %q, timeout %v, %d connections, looks whether it can write %v, mode %v, TLS %v; want what the URL says",
			c.RuntimeParams, c.ConnectTimeout, o.MaxConns, c.ValidateConnect != nil, c.DefaultQueryExecMode, c.TLSConfig != nil)
	}
}

func TestParseURL_Environment(t *testing.T) {
	bare(t)
	t.Setenv("PGPASSWORD", "secret")
	t.Setenv("PGAPPNAME", "ours")
	t.Setenv("PGHOST", "db.example")
	o, _, err := pgstore.ParseURL("postgres://u@/d")
	if err != nil || o.ConnConfig.Password != "secret" || o.ConnConfig.RuntimeParams["application_name"] != "ours" || o.ConnConfig.Host != "db.example" {
		t.Errorf("got %+v, %v; want what the environment says", o, err)
	}
}

func TestParseURL_Refuses(t *testing.T) {
	bare(t)
	for _, tt := range []struct{ raw, want string }{
		{"", "must begin with postgres://"},
		{"postgres:secret", "must begin with postgres://"},
		{"postgres:/secret@h", "must begin with postgres://"},
		{"mysql://:secret@h", "must begin with postgres://"},
		{"POSTGRES://h", "must begin with postgres://"},
		{"postgres://h#secret", "must not contain #"},
		{"postgres://u:sec ret@h", "or spaces"},
		{"postgres://u:p@secret@h", "unexpected @"},
		{"postgres://u:p/secret@h/d", "unexpected @"},
		{"postgres://u:p?secret@h/d", "unexpected @"},
		{"postgres://h/d?prefix=a@b", "unexpected @"},
		{"postgres://u:secret/d", "a number between 1 and 65535"},
		{"postgres://u:p@h/d/secret", "unexpected / after the database"},
		{"postgres://u:p@h:secret/d", "a number between 1 and 65535"},
		{"postgres://u:p@h:0/d", "a number between 1 and 65535"},
		{"postgres://u:p@h:65536/d", "a number between 1 and 65535"},
		{"postgres://u:p@a,b:secret/d", "a number between 1 and 65535"},
		{"postgres://u:p@::1/d", "[address]"},
		{"postgres://u:p@a:b:secret/d", "[address]"},
		{"postgres://u:secret%zz@h/d", "pgx cannot parse it"},
		{"postgres://u:secret%00@h/d", "pgx cannot parse it"},
		{"postgres://u:p@h/d?secret", "must be percent-encoded name=value"},
		{"postgres://u:p@h/d?prefix=%zz", "must be percent-encoded name=value"},
		{"postgres://u:p@h/d?prefix=a%00", "must be percent-encoded name=value"},
		{"postgres://u:p@h/d?prefix=a&prefix=b", "prefix: must appear once"},
		{"postgres://u:p@h/d?sslmode=", "sslmode: must appear once, with a value"},
		{"postgres://u:p@h/d?statement_timeout=secret", `unknown parameter "statement_timeout"`},
		{"postgres://u:p@h/d?search_path=secret", "use schema=NAME"},
		{"postgres://u:p@h/d?ssl=true", "sslmode=verify-full"},
		{"postgres://u:p@h/d?lease_share=1", `unknown parameter "lease_share": valid parameters are schema, prefix`},
		{"postgres://u:secret@h/d?sslmode=wrong", "sslmode"},
		{"postgres://u:secret@h/d?target_session_attrs=wrong", "target_session_attrs"},
		{"postgres://u:secret@h/d?target_session_attrs=secret", "pgx cannot parse it"},
		{"postgres://u@h/d?password=secret&connect_timeout=soon", "connect_timeout"},
		{"postgres://u:secret@h/d?pool_max_conns=0", "pool_max_conns too small"},
		{"postgres://u:secret@h/d?sslmode=verify-full&sslrootcert=/does/not/exist", "no such file"},
		{"postgres://u:secret@h/d?default_query_exec_mode=wrong", "default_query_exec_mode"},
		{"postgres://u:p@h/d?schema=pg_x", "must not begin with pg_"},
		{"postgres://u:p@h/d?durable=yes", "write true or false"},
		{"postgres://u:p@h/d?timeout=0s", "timeout: "},
		{"postgres://u:p@h/d?timeout=5", "timeout: "},
		{"postgres://u:p@h/d?max_batch=0", "max_batch: "},
		{"postgres://u:p@h/d?max_queue=-1", "max_queue: "},
		{"postgres://u:p@h/d?max_in_flight=1e3", "max_in_flight: "},
		{"postgres://u:p@h/d?max_in_flight=99999999", "max_in_flight: "},
		{"postgres://u:p@h/d?prefix=" + strings.Repeat("x", 257), "prefix: "},
	} {
		_, _, err := pgstore.ParseURL(tt.raw)
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "pgstore: url: ") {
			t.Errorf("ParseURL(%q): %v, want an error with %q", tt.raw, err, tt.want)
		} else if strings.Contains(err.Error(), "secret") || strings.Contains(fmt.Sprintf("%+v", err), "secret") {
			t.Errorf("ParseURL(%q): %v shows a secret", tt.raw, err)
		}
	}
}

func FuzzParseURL(f *testing.F) {
	for _, raw := range []string{"postgres://u:p@h:1,b/d?schema=a&sslmode=disable", "postgres:///d?host=/run&password=p", "postgresql://[::1]:5/"} {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		o, _, err := pgstore.ParseURL(raw)
		if (o == nil) == (err == nil) {
			t.Errorf("ParseURL(%q): %v, %v", raw, o, err)
		}
	})
}
