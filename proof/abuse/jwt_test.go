// SPDX-License-Identifier: Apache-2.0

package abuse_test

import (
	"crypto"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/proof/meted"
)

// An issuer signs tokens by RS256.
type issuer struct{ key *rsa.PrivateKey }

func newIssuer(t *testing.T) issuer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return issuer{key}
}

func encode[T string | []byte](b T) string { return base64.RawURLEncoding.EncodeToString([]byte(b)) }

// keySet is the public key, as k.
func (i issuer) keySet() string {
	return fmt.Sprintf(`{"keys":[{"kty":"RSA","kid":"k","n":%q,"e":%q}]}`, encode(i.key.N.Bytes()), encode(big.NewInt(int64(i.key.E)).Bytes()))
}

// sign returns a token with this header and these claims.
func (i issuer) sign(t *testing.T, header, claims string) string {
	t.Helper()
	text := encode(header) + "." + encode(claims)
	hash := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, i.key, crypto.SHA256, hash[:])
	if err != nil {
		t.Fatal(err)
	}
	return text + "." + encode(signature)
}

const goodHeader = `{"alg":"RS256","kid":"k"}`

// proClaims are claims of the better plan, good between these two times from now.
func proClaims(notBefore, expires time.Duration) string {
	now := time.Now()
	return fmt.Sprintf(`{"plan":"pro","sub":"kim","iss":"https://id.example","aud":"api","nbf":%d,"exp":%d}`,
		now.Add(notBefore).Unix(), now.Add(expires).Unix())
}

// startWithPlans is a gateway that admits pro to 10,000 requests and everybody else to none.
func startWithPlans(t *testing.T, keySet, settings string) *meted.Server {
	t.Helper()
	upstream := serve(t, func(http.ResponseWriter, *http.Request) {})
	dir := t.TempDir()
	write(t, filepath.Join(dir, "keys.json"), keySet)
	write(t, filepath.Join(dir, "policy.json"), `{"rules": [
		{"name": "pro", "limit_keys": [], "match": {"jwt:plan": "pro"}, "algorithm": "token_bucket", "algorithm_config": {"rate": "1/10h", "burst": 10000}},
		{"name": "free", "limit_keys": [], "algorithm": "token_bucket", "algorithm_config": {"rate": "1/10h", "burst": 1}}]}`)
	s := meted.Start(t, "policy: policy.json\nupstream: "+upstream.URL+"\njwt: {keys: keys.json, issuer: https://id.example, audience: [api], leeway: 1s"+settings+"}\n", dir)
	if got := ask(t, http.MethodGet, s.URL, "").status; got != http.StatusOK {
		t.Fatalf("the one request of nobody: status %d, want 200", got)
	}
	return s
}

// A token with any defect has no claims. Its sender counts as anonymous.
func TestAbuse_ForgedTokens(t *testing.T) {
	t.Parallel()
	own, other := newIssuer(t), newIssuer(t)
	s := startWithPlans(t, own.keySet(), "")
	good := own.sign(t, goodHeader, proClaims(0, time.Hour))
	if got := ask(t, http.MethodGet, s.URL, "", "Authorization", "Bearer "+good).status; got != http.StatusOK {
		t.Fatalf("the good token: status %d, want 200", got)
	}
	header, rest, _ := strings.Cut(good, ".")
	claims, signature, _ := strings.Cut(rest, ".")
	hour := proClaims(0, time.Hour)
	for name, forged := range map[string]string{
		"alg none":                 encode(`{"alg":"none","kid":"k"}`) + "." + claims + ".",
		"alg None":                 encode(`{"alg":"None","kid":"k"}`) + "." + claims + "." + signature,
		"no alg":                   encode(`{"kid":"k"}`) + "." + claims + "." + signature,
		"no signature":             header + "." + claims + ".",
		"the public key as secret": confused(own, hour),
		"another issuer's key":     other.sign(t, goodHeader, hour),
		"a key that is not there":  own.sign(t, `{"alg":"RS256","kid":"x"}`, hour),
		"a key it brings along":    other.sign(t, `{"alg":"RS256","kid":"x","jwk":`+strings.TrimSuffix(strings.TrimPrefix(other.keySet(), `{"keys":[`), `]}`)+`}`, hour),
		"a key it points to":       other.sign(t, `{"alg":"RS256","kid":"../../../dev/null","jku":"http://127.0.0.1:1/keys"}`, hour),
		"other claims":             header + "." + encode(strings.Replace(hour, "kim", "joe", 1)) + "." + signature,
		"expired":                  own.sign(t, goodHeader, proClaims(-time.Hour, -time.Minute)),
		"not yet":                  own.sign(t, goodHeader, proClaims(time.Hour, 2*time.Hour)),
		"no exp":                   own.sign(t, goodHeader, `{"plan":"pro","iss":"https://id.example","aud":"api"}`),
		"an exp that is text":      own.sign(t, goodHeader, strings.Replace(hour, `"exp":`, `"exp":"9999999999","x":`, 1)),
		"another issuer":           own.sign(t, goodHeader, strings.Replace(hour, "id.example", "id.evil", 1)),
		"another audience":         own.sign(t, goodHeader, strings.Replace(hour, `"api"`, `"shop"`, 1)),
		"a claim twice":            own.sign(t, goodHeader, strings.Replace(hour, `{`, `{"plan":"free",`, 1)),
		"a critical extension":     own.sign(t, `{"alg":"RS256","kid":"k","crit":["x"]}`, hour),
		"too deep":                 own.sign(t, goodHeader, strings.Replace(hour, `{`, `{"x":`+strings.Repeat("[", 500)+strings.Repeat("]", 500)+`,`, 1)),
		"too many claims":          own.sign(t, goodHeader, strings.Replace(hour, `{`, `{`+strings.Repeat(`"x":1,`, 200), 1)),
		"too long":                 own.sign(t, goodHeader, strings.Replace(hour, `{`, `{"x":"`+strings.Repeat("x", 9000)+`",`, 1)),
		"junk":                     "..",
	} {
		if got := ask(t, http.MethodGet, s.URL, "", "Authorization", "Bearer "+forged).status; got != http.StatusTooManyRequests {
			t.Errorf("%s: status %d, want 429, as nobody", name, got)
		}
	}
	for name, fields := range map[string][]string{
		"two headers":         {"Authorization", "Bearer " + good, "Authorization", "Bearer " + good},
		"a good one behind":   {"Authorization", "Basic eA==", "Authorization", "Bearer " + good},
		"in another header":   {"X-Authorization", "Bearer " + good, "Cookie", "token=" + good},
		"the claim by itself": {"jwt-plan", "pro", "X-Jwt-Plan", "pro"},
	} {
		if got := ask(t, http.MethodGet, s.URL, "", fields...).status; got != http.StatusTooManyRequests {
			t.Errorf("%s: status %d, want 429, as nobody", name, got)
		}
	}
	if got := ask(t, http.MethodGet, s.URL, "", "Authorization", "Bearer "+good).status; got != http.StatusOK {
		t.Errorf("the good token, after all of them: status %d, want 200", got)
	}
	if strings.Contains(s.Log(), "eyJ") {
		t.Errorf("a token is in the log:\n%s", s.Log())
	}
}

// confused is a token signed by HS256, with the issuer's public key as the secret.
func confused(i issuer, claims string) string {
	der, err := x509.MarshalPKIXPublicKey(&i.key.PublicKey)
	if err != nil {
		panic(err) // of a good key: it cannot be
	}
	text := encode(`{"alg":"HS256","kid":"k"}`) + "." + encode(claims)
	mac := hmac.New(sha256.New, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
	mac.Write([]byte(text))
	return text + "." + encode(mac.Sum(nil))
}

// A client with an invalid token neither sees nor spends the quota of the token's subject.
func TestAbuse_QuotaOfOthers(t *testing.T) {
	t.Parallel()
	own := newIssuer(t)
	dir := t.TempDir()
	upstream := serve(t, func(http.ResponseWriter, *http.Request) {})
	write(t, filepath.Join(dir, "keys.json"), own.keySet())
	write(t, filepath.Join(dir, "policy.json"), `{"rules": [
		{"name": "user", "limit_keys": ["jwt:sub"], "algorithm": "token_bucket", "algorithm_config": {"rate": "1/10h", "burst": 7}},
		{"name": "anyone", "limit_keys": ["ip:address"], "algorithm": "token_bucket", "algorithm_config": {"rate": "1/10h", "burst": 50}}]}`)
	s := meted.Start(t, "policy: policy.json\nupstream: "+upstream.URL+"\njwt: {keys: keys.json}\n", dir)
	header, claims := goodHeader, proClaims(0, time.Hour)
	good, forged := own.sign(t, header, claims), newIssuer(t).sign(t, header, claims)
	for range 10 {
		got := ask(t, http.MethodGet, s.URL, "", "Authorization", "Bearer "+forged)
		if got.status != http.StatusOK || strings.Contains(fmt.Sprint(got.header), "user") {
			t.Errorf("a forged token: %d %v, want 200 by the limit of anyone alone", got.status, got.header)
		}
	}
	got := ask(t, http.MethodGet, s.URL, "", "Authorization", "Bearer "+good)
	if !strings.Contains(fmt.Sprint(got.header), `"user";r=6`) {
		t.Errorf("the good token after forged ones: %v, want 6 of 7 left", got.header)
	}
}
