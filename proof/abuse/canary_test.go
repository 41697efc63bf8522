// SPDX-License-Identifier: Apache-2.0

package abuse_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/internal/testkit"
	"github.com/metehq/mete/proof/meted"
)

// Canaries are secret values that must not leak. No format escapes any of their characters.
const (
	canaryToken   = "canarytokenq1w2e3"
	canaryCookie  = "canarycookier4t5y6"
	canaryKey     = "canaryapikeyu7i8o9"
	canaryQuery   = "canaryqueryp0a1s2"
	canarySubject = "canarysubjectd3f4g5"
	canaryAddress = "203.0.113.199"
	canaryIPv6    = "2001:db8:cafe:f00d::1"
	canaryHash    = "canaryhashkeyh6j7k8"
	canaryDBPass  = "canarydbpassl9z8x7"
)

// secrets must not appear anywhere except at their source. personal are identities, which may appear in
// the keys of a store.
var (
	secrets  = []string{canaryToken, canaryCookie, canaryKey, canaryQuery, canaryHash, canaryDBPass}
	personal = []string{canarySubject, canaryAddress, canaryIPv6}
)

const canaryPolicy = `{"rules": [
	{"name": "token", "limit_keys": ["header:x-auth-token"], "algorithm": "token_bucket", "algorithm_config": {"rate": "1/10h", "burst": 3}},
	{"name": "basic", "limit_keys": ["header:authorization"], "algorithm": "fixed_window", "algorithm_config": {"tokens": 4, "window": "10h"}},
	{"name": "cookie", "limit_keys": ["cookie:session"], "algorithm": "sliding_log", "algorithm_config": {"tokens": 4, "window": "10h"}},
	{"name": "key", "limit_keys": ["header:x-api-key"], "algorithm": "sliding_window", "algorithm_config": {"tokens": 4, "window": "10h"}},
	{"name": "query", "limit_keys": ["query:access_token"], "algorithm": "token_bucket", "algorithm_config": {"rate": "1/10h", "burst": 4}},
	{"name": "subject", "limit_keys": ["jwt:sub"], "algorithm": "token_bucket", "algorithm_config": {"rate": "1/10h", "burst": 4}},
	{"name": "client", "limit_keys": ["ip:address"], "algorithm": "token_bucket", "algorithm_config": {"rate": "1/10h", "burst": 4}},
	{"name": "tried", "mode": "shadow", "limit_keys": ["header:x-api-key", "ip:address"], "algorithm": "token_bucket", "algorithm_config": {"rate": "1/10h", "burst": 1}}]}`

// Secrets that clients send never appear in metrics, logs, stores or the denial log. Client identities
// appear in none of them except the store.
func TestAbuse_Canaries(t *testing.T) {
	t.Parallel()
	redis := proctest.StartRedis(t)
	if _, err := redis.Do("ACL", "SETUSER", "mete", "on", ">"+canaryDBPass, "~*", "&*", "+@all"); err != nil {
		t.Fatal(err)
	}
	postgres := proctest.StartPostgres(t)
	for _, tt := range []struct {
		name, store string
		log         string
	}{
		{"redis, text", "redis://mete:" + canaryDBPass + "@" + redis.Addr + "?timeout=1m", "text"},
		{"postgres, json", postgres.URL() + "&schema=buckets&timeout=1m", "json"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			schema := "violations_" + tt.log
			own := newIssuer(t)
			s := startCanaries(t, own, fmt.Sprintf("store: %q\nviolations: %q\nlog_format: %s\n", tt.store, postgres.URL()+"&schema="+schema, tt.log))
			testkit.Eventually(t, "the database of violations is ready", func() error { // a busy machine needs a second attempt
				if !strings.Contains(s.Log(), "violations recorded") {
					return errors.New("the log does not say it")
				}
				return nil
			})
			sendCanaries(t, s, own)

			places := map[string]string{
				"a metric": ask(t, http.MethodGet, s.AdminURL+"/metrics", "").body,
				"the log":  s.Log(),
			}
			if !strings.Contains(places["a metric"], "mete_") {
				t.Fatalf("no metrics: %s", places["a metric"])
			}
			testkit.Eventually(t, "denials are recorded", func() (err error) {
				places["a violation"], err = tables(postgres, schema)
				if err == nil && !strings.Contains(places["a violation"], "basic") && !strings.Contains(places["a violation"], "token") {
					err = fmt.Errorf("not in %s", places["a violation"])
				}
				return err
			})
			for place, text := range places {
				mustLack(t, place, text, secrets)
				mustLack(t, place, text, personal)
			}
			if tt.log == "text" {
				mustLack(t, "Redis", everything(t, redis), secrets)
				return
			}
			text, err := tables(postgres, "buckets")
			if err != nil || !strings.Contains(text, "client") {
				t.Fatalf("no buckets in PostgreSQL: %v", err)
			}
			mustLack(t, "PostgreSQL", text, secrets)
		})
	}
}

func startCanaries(t *testing.T, own issuer, settings string) *meted.Server {
	t.Helper()
	upstream := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/broken" {
			panic(http.ErrAbortHandler)
		}
	})
	dir := t.TempDir()
	write(t, filepath.Join(dir, "keys.json"), own.keySet())
	// On a slow machine the deadline must be long enough, so that the store decides and denies clients.
	patient := strings.ReplaceAll(canaryPolicy, `"limit_keys"`, `"deadline": "10s", "limit_keys"`)
	write(t, filepath.Join(dir, "policy.json"), patient)
	return meted.Start(t, "policy: policy.json\nlog_level: debug\nupstream: "+upstream.URL+"\njwt: {keys: keys.json}\ntrusted_proxies: [127.0.0.0/8]\n"+
		"hash_key: "+canaryHash+canaryHash+"\nviolations_user: jwt:sub\n"+settings, dir)
}

// sendCanaries sends all of them, until they are denied and a few times more, and in
// ways that go wrong.
func sendCanaries(t *testing.T, s *meted.Server, own issuer) {
	t.Helper()
	// Wrong in every way at the API, with the canaries in them.
	for _, body := range []string{
		takeBody("header:x-api-key", canaryKey, "ip:address", canaryAddress), takeBody("ip:address", canaryAddress) + canaryKey,
		`{"attributes":{"header:x-api-key":` + canaryKey + `}}`, `{"` + canaryKey + `":1}`, "\xff" + canaryKey,
	} {
		for _, verb := range []string{"take", "peek", "reset", "refund", "explain", canaryKey} {
			ask(t, http.MethodPost, s.AdminURL+"/v1/"+verb+"?x="+canaryKey, body, "Authorization", "Bearer "+canaryToken)
			ask(t, http.MethodPost, s.AdminURL+"/v1/"+verb+"?x="+canaryKey, body)
		}
	}
	claims := fmt.Sprintf(`{"sub":%q,"exp":%d}`, canarySubject, time.Now().Add(time.Hour).Unix())
	good, forged := own.sign(t, goodHeader, claims), newIssuer(t).sign(t, goodHeader, claims)
	basic := "Basic " + base64.StdEncoding.EncodeToString([]byte("u:"+canaryToken))
	denied := 0
	for _, authorization := range []string{"Bearer " + good, "Bearer " + forged, "Bearer " + canaryToken, basic, canaryToken} {
		for _, address := range []string{canaryAddress, canaryIPv6} {
			for _, path := range []string{"/", "/broken", "/a/%2e%2e/b", "/" + strings.Repeat("x", 9000)} {
				got := ask(t, http.MethodGet, s.URL+path+"?access_token="+canaryQuery+"&x=;"+canaryQuery, "", "X-Forwarded-For", address,
					"Authorization", authorization, "X-Auth-Token", canaryToken, "Cookie", "session="+canaryCookie, "X-Api-Key", canaryKey)
				if got.status == http.StatusTooManyRequests {
					denied++
				}
				mustLack(t, "an answer", fmt.Sprint(got.body, got.header), secrets)
			}
		}
	}
	if denied == 0 {
		t.Error("no request was denied")
	}
}

// mustLack fails the test if a text has a canary in it, plain or as it is often
// written.
func mustLack(t *testing.T, place, text string, canaries []string) {
	t.Helper()
	for _, canary := range canaries {
		for _, form := range []string{canary, url.QueryEscape(canary), fmt.Sprintf("%x", canary), base64.StdEncoding.EncodeToString([]byte("u:" + canary))} {
			if i := strings.Index(text, form); i >= 0 {
				t.Errorf("%s has %q in it: …%q…", place, form, text[max(0, i-200):min(len(text), i+100)])
			}
		}
	}
	if strings.Contains(text, "eyJ") { // how every token begins
		t.Errorf("%s has a token in it", place)
	}
}

// everything is all keys of a Redis, and all values.
func everything(t *testing.T, r *proctest.Redis) string {
	t.Helper()
	const dump = `local out = {} for _, k in ipairs(redis.call('KEYS', '*')) do out[#out+1] = k
		local kind = redis.call('TYPE', k).ok
		if kind == 'string' then out[#out+1] = redis.call('GET', k)
		elseif kind == 'hash' then for _, v in ipairs(redis.call('HGETALL', k)) do out[#out+1] = v end
		elseif kind == 'list' then for _, v in ipairs(redis.call('LRANGE', k, 0, -1)) do out[#out+1] = v end
		elseif kind == 'zset' then for _, v in ipairs(redis.call('ZRANGE', k, 0, -1)) do out[#out+1] = v end
		end end return table.concat(out, '\n')`
	text, err := r.Do("EVAL", dump, "0")
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range []string{"token:", "cookie:", "key:", "client:"} {
		if !strings.Contains(text, rule) {
			t.Errorf("no bucket of rule %s in Redis:\n%s", rule, text)
		}
	}
	return text
}

// tables is all rows of all tables and views of a schema, as text.
func tables(p *proctest.Postgres, schema string) (string, error) {
	return p.Psql(`SELECT coalesce(string_agg(query_to_xml(format('SELECT * FROM %I.%I', nspname, relname), true, false, '')::text, ''), '')
		FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace WHERE relkind IN ('r', 'p', 'v') AND nspname = '` + schema + `'`)
}
