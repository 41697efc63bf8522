// SPDX-License-Identifier: Apache-2.0

package monitoring_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/proof/meted"
)

// trafficPolicy has a rule of each kind: one that denies, one in shadow, one for a
// part of the keys, one for a language model.
const trafficPolicy = `{"bundle_version": 1, "expires_at": "2100-01-01T00:00:00Z", "policies": [{"id": "traffic", "spec": {"rules": [
	{"name": "client", "limit_keys": ["header:x-api-key"], "algorithm": "token_bucket", "algorithm_config": {"rate": "1/1s", "burst": 2}},
	{"name": "trial", "mode": "shadow", "limit_keys": ["header:x-tenant"], "algorithm": "token_bucket", "algorithm_config": {"rate": "1/1s", "burst": 1}},
	{"name": "model", "group": "model", "limit_keys": [], "match": {"ai:model": "*"}, "algorithm": "token_bucket_llm", "tokens_per_minute": 1000000000},
	{"name": "part", "mode": "1%", "limit_keys": ["header:x-tenant", "header:x-api-key"], "algorithm": "token_bucket", "algorithm_config": {"rate": "1/1s", "burst": 1}}]}}]}`

// client trusts every certificate.
var client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true}}

// certificate writes one for this machine, and its key.
func certificate(t *testing.T, dir string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "cert.pem"), string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})))
	write(t, filepath.Join(dir, "key.pem"), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})))
}

// startGateway starts a server in front of an upstream, with its buckets in memory,
// TLS, and a key set.
func startGateway(t *testing.T, settings string) *meted.Server {
	t.Helper()
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/chat/completions" {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"choices": [{"message": {"content": "hello"}}], "usage": {"prompt_tokens": 13, "completion_tokens": 7}}`)
		}
	}))
	t.Cleanup(upstream.Close)
	dir := t.TempDir()
	certificate(t, dir)
	write(t, filepath.Join(dir, "policy.json"), trafficPolicy)
	write(t, filepath.Join(dir, "keys.json"), `{"keys":[{"kty":"oct","alg":"HS256","kid":"a","k":"c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0"}]}`)
	s := meted.Start(t, "policy: policy.json\nupstream: "+upstream.URL+"\ntls: {cert: cert.pem, key: key.pem}\njwt: {keys: keys.json, algorithms: [HS256]}\n"+settings, dir)
	s.URL = "https://" + s.Addr
	return s
}

// publish serves the policy as a signed bundle, and returns the settings of a server that
// follows it.
func publish(t *testing.T, dir string) string {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	signature := base64.StdEncoding.EncodeToString(ed25519.Sign(private, []byte(trafficPolicy)))
	write(t, filepath.Join(dir, "release.pub.pem"), string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})))
	write(t, filepath.Join(dir, "policy.json"), trafficPolicy)
	write(t, filepath.Join(dir, "policy.json.sig"), "mete-policy-signature-v1 ed25519\n"+signature+"\n")
	source := httptest.NewServer(http.FileServer(http.Dir(dir)))
	t.Cleanup(source.Close)
	return "policy: " + source.URL + "/policy.json\npolicy_keys: [release.pub.pem]\nstate_directory: .\n"
}

// startAPI starts a server that follows a bundle, with its buckets in Redis, and violations in
// PostgreSQL.
func startAPI(t *testing.T, redis *proctest.Redis) *meted.Server {
	t.Helper()
	dir := t.TempDir()
	violations, separator := proctest.PostgresURL(t), "?"
	if strings.Contains(violations, "?") {
		separator = "&"
	}
	return meted.Start(t, fmt.Sprintf("%sstore: redis://%s?timeout=1m\nviolations: %q\n", publish(t, dir), redis.Addr, violations+separator+"schema="+proctest.PostgresSchema(t)), dir)
}

// traffic goes to both until the test ends.
func traffic(t *testing.T, gateway, api *meted.Server) {
	ctx, cancel := context.WithCancel(context.Background())
	var sending sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		sending.Wait()
	})
	sending.Go(func() {
		for ctx.Err() == nil {
			send(ctx, http.MethodGet, gateway.URL+"/", "", "X-Api-Key", "k", "X-Tenant", "t")
			send(ctx, http.MethodGet, gateway.URL+"/other", "", "X-Tenant", "t")
			send(ctx, http.MethodPost, gateway.URL+"/v1/chat/completions", `{"model": "m", "messages": [{"role": "user", "content": "hello"}]}`)
			send(ctx, http.MethodPost, api.URL+"/v1/take", `{"attributes":{"header:x-api-key":"k","header:x-tenant":"t"}}`)
			send(ctx, http.MethodPost, api.URL+"/v1/take", `{"attributes":{"header:x-tenant":"t"}}`)
			select {
			case <-ctx.Done():
			case <-time.After(5 * time.Millisecond):
			}
		}
	})
}

// send sends a request and ignores the response. The metrics show the result.
func send(ctx context.Context, method, url, body string, fields ...string) {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(fields); i += 2 {
		req.Header.Set(fields[i], fields[i+1])
	}
	if resp, err := client.Do(req); err == nil {
		resp.Body.Close()
	}
}
