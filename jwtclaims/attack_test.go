// SPDX-License-Identifier: Apache-2.0

package jwtclaims_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete/internal/testkit"
	"github.com/metehq/mete/jwtclaims"
	"github.com/metehq/mete/policy"
)

const payload = `{"exp":253402300799,"plan":"pro"}`

// everyAlgorithm is a configuration that accepts all algorithms.
var everyAlgorithm = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "HS256", "HS384", "HS512"}

func TestAttack_None(t *testing.T) {
	for _, algorithm := range []string{"none", "None", "NONE", "nOnE", "none ", "", "null", "HS256none"} {
		for _, signature := range []string{"", "x", encode([]byte("sig"))} {
			v := start(t, jwtclaims.Config{KeySet: file(t, keySet(jwk("ed", edKey()))), Algorithms: everyAlgorithm})
			header := fmt.Sprintf(`{"alg":%q,"kid":"ed"}`, algorithm)
			checkVerdict(t, v, algorithm, encode([]byte(header))+"."+encode([]byte(payload))+"."+signature, jwtclaims.ReasonBadAlgorithm)
		}
	}
	for _, header := range []string{`{}`, `{"alg":null}`, `{"alg":1}`, `{"alg":["EdDSA"]}`, `{"Alg":"EdDSA"}`, `{"ALG":"EdDSA","kid":"ed"}`} {
		v := start(t, jwtclaims.Config{KeySet: file(t, keySet(jwk("ed", edKey())))})
		checkVerdict(t, v, header, raw(header, payload), jwtclaims.ReasonBadAlgorithm)
	}
}

// A public key is no secret, however it is spelled.
func TestAttack_PublicKeyAsSecret(t *testing.T) {
	public := rsaKey().Public()
	pkix := must(x509.MarshalPKIXPublicKey(public))
	pkcs1 := x509.MarshalPKCS1PublicKey(&rsaKey().PublicKey)
	for i, secret := range [][]byte{
		pkix, pkcs1, rsaKey().N.Bytes(), must(json.Marshal(jwk("rsa", rsaKey()))),
		pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: pkix}), pem.EncodeToMemory(&pem.Block{Type: "RSA PUBLIC KEY", Bytes: pkcs1}),
		bytes.TrimSpace(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: pkix})),
	} {
		for _, kid := range []string{`,"kid":"rsa"`, ""} {
			text := encode([]byte(`{"alg":"HS256"`+kid+`}`)) + "." + encode([]byte(payload))
			mac := hmac.New(sha256.New, secret)
			mac.Write([]byte(text))
			token := text + "." + encode(mac.Sum(nil))
			path := file(t, keySet(jwk("rsa", rsaKey())))
			checkVerdict(t, start(t, jwtclaims.Config{KeySet: path}), fmt.Sprint("secret ", i), token, jwtclaims.ReasonBadAlgorithm)
			checkVerdict(t, start(t, jwtclaims.Config{KeySet: path, Algorithms: everyAlgorithm}), fmt.Sprint("secret ", i), token, jwtclaims.ReasonUnknownKey)
		}
	}
}

func TestAttack_Keys(t *testing.T) {
	many := func(n int) []map[string]string {
		keys := []map[string]string{jwk("ed", edKey())}
		for i := range n - 1 {
			keys = append(keys, jwk(fmt.Sprint(i), newEdKey()))
		}
		return keys
	}
	rs256 := func(kid string) string { return sign(t, "RS256", kid, rsaKey(), claims(nil)) }
	for _, tt := range []struct {
		what string
		set  string
		then string // the token
		want jwtclaims.Reason
	}{
		{"another key under its name", keySet(jwk("rsa", rsaKey())), sign(t, "RS256", "rsa", otherRSAKey(), claims(nil)), jwtclaims.ReasonBadSignature},
		{"another key without a name", keySet(jwk("rsa", rsaKey())), sign(t, "RS256", "", otherRSAKey(), claims(nil)), jwtclaims.ReasonBadSignature},
		{"a key that is not there", keySet(jwk("rsa", rsaKey())), rs256("x"), jwtclaims.ReasonUnknownKey},
		{"a name of a key of another kind", keySet(jwk("rsa", rsaKey()), jwk("ed", edKey())), rs256("ed"), jwtclaims.ReasonUnknownKey},
		{"a name that is a number", keySet(jwk("1", edKey())), raw(`{"alg":"EdDSA","kid":1}`, payload), jwtclaims.ReasonUnknownKey},
		{"a name that is a path", keySet(jwk("ed", edKey())), raw(`{"alg":"EdDSA","kid":"../../dev/null"}`, payload), jwtclaims.ReasonUnknownKey},
		{"an empty name, of a key that has none", keySet(jwk("", edKey())), raw(`{"alg":"EdDSA","kid":""}`, payload), ""},
		{"no name among four keys", keySet(many(4)...), sign(t, "EdDSA", "", edKey(), claims(nil)), ""},
		{"no name among five keys", keySet(many(5)...), sign(t, "EdDSA", "", edKey(), claims(nil)), jwtclaims.ReasonUnknownKey},
		{"a key of its own", keySet(jwk("ed", edKey())), raw(`{"alg":"EdDSA","kid":"x","jwk":{"kty":"OKP","crv":"Ed25519","x":"AA"},"jku":"http://127.0.0.1:1"}`, payload), jwtclaims.ReasonUnknownKey},
		{"a key for another algorithm", keySet(with(jwk("rsa", rsaKey()), "alg", "PS256")), rs256("rsa"), jwtclaims.ReasonUnknownKey},
		{"a key for its algorithm", keySet(with(jwk("rsa", rsaKey()), "alg", "RS256"), jwk("ed", edKey())), rs256("rsa"), ""},
		{"a key for encryption", keySet(with(jwk("rsa", rsaKey()), "use", "enc"), jwk("ed", edKey())), rs256("rsa"), jwtclaims.ReasonUnknownKey},
		{"a key for signatures", keySet(with(jwk("rsa", rsaKey()), "use", "sig")), rs256("rsa"), ""},
	} {
		checkVerdict(t, startAnyway(t, tt.set), tt.what, tt.then, tt.want)
	}
}

// startAnyway starts with a set beside which there is a key of use.
func startAnyway(t *testing.T, set string) *jwtclaims.Verifier {
	return start(t, jwtclaims.Config{KeySet: file(t, strings.Replace(set, `]}`, `,`+string(must(json.Marshal(jwk("spare", p256Key()))))+`]}`, 1))})
}

func TestAttack_Malformed(t *testing.T) {
	token := good(t)
	header, rest, _ := strings.Cut(token, ".")
	body, signature, _ := strings.Cut(rest, ".")
	many := `{"exp":253402300799,"plan":"pro"`
	for i := range 128 {
		many += fmt.Sprintf(`,"c%d":1`, i)
	}
	const head = `{"alg":"EdDSA","kid":"ed"}`
	for what, bad := range map[string]string{
		"one part":              "x",
		"two parts":             header + "." + body,
		"four parts":            token + ".x",
		"five parts":            token + ".x.y",
		"empty parts":           "..",
		"garbage":               "\x00\xff\xfe.\x01.\x02",
		"a space within":        header + ". " + body + "." + signature,
		"a line end":            header + "." + body + "." + signature + "\n",
		"padding":               header + "." + body + "=." + signature,
		"padded signature":      header + "." + body + "." + signature + "==",
		"loose bits":            header + "." + body + "." + signature[:len(signature)-1] + "B",
		"standard alphabet":     header + "." + base64.RawStdEncoding.EncodeToString([]byte(`{"x":"???>>>"}`)) + "." + signature,
		"an array":              raw(head, `["plan","pro"]`),
		"text":                  raw(head, `"plan"`),
		"null":                  raw(head, `null`),
		"nothing":               raw(head, ``),
		"cut off":               raw(head, `{"plan":"pro"`),
		"junk behind":           raw(head, payload+"{}"),
		"a claim twice":         raw(head, `{"exp":253402300799,"plan":"free","plan":"pro"}`),
		"an escaped claim":      raw(head, `{"exp":253402300799,"plan":"free","pl\u0061n":"pro"}`),
		"exp twice":             raw(head, `{"exp":1,"exp":253402300799,"plan":"pro"}`),
		"a header twice":        raw(`{"alg":"none","alg":"EdDSA","kid":"ed"}`, payload),
		"bad UTF-8":             raw(head, "{\"exp\":253402300799,\"plan\":\"pro\",\"x\":\"\xff\"}"),
		"too deep":              raw(head, `{"exp":253402300799,"plan":"pro","x":`+strings.Repeat("[", 16)+strings.Repeat("]", 16)+`}`),
		"bottomless":            raw(head, strings.Repeat("[", 5000)),
		"a header too deep":     raw(`{"alg":"EdDSA","kid":"ed","x":`+strings.Repeat("[", 16)+strings.Repeat("]", 16)+`}`, payload),
		"too many claims":       raw(head, many+"}"),
		"a critical extension":  raw(`{"alg":"EdDSA","kid":"ed","crit":["b64"],"b64":false}`, payload),
		"a critical none":       raw(`{"alg":"EdDSA","kid":"ed","crit":null}`, payload),
		"no header":             raw(``, payload),
		"a header that is text": raw(`"alg"`, payload),
	} {
		v := start(t, jwtclaims.Config{KeySet: file(t, keySet(jwk("ed", edKey())))})
		checkVerdict(t, v, what, bad, jwtclaims.ReasonMalformed)
	}
}

func TestAttack_ChangedTokens(t *testing.T) {
	v := start(t, jwtclaims.Config{KeySet: file(t, keySet(jwk("ed", edKey())))})
	token := good(t)
	if got := claim(v, token, "plan"); got != "pro" {
		t.Fatalf("the good token: got %q", got)
	}
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_."
	for i := range len(token) {
		for _, letter := range []byte{letters[(strings.IndexByte(letters, token[i])+1)%len(letters)], letters[i%len(letters)]} {
			changed := token[:i] + string(letter) + token[i+1:]
			if got := claim(v, changed, "plan"); changed != token && got != missing {
				t.Fatalf("byte %d changed to %q: got %q, want %q", i, letter, got, missing)
			}
		}
		if got := claim(v, token[:i], "plan"); got != missing {
			t.Fatalf("cut to %d bytes: got %q, want %q", i, got, missing)
		}
	}
}

func TestAttack_Sizes(t *testing.T) {
	path := file(t, keySet(jwk("ed", edKey())))
	token := good(t)
	checkVerdict(t, start(t, jwtclaims.Config{KeySet: path, MaxTokenBytes: len(token)}), "at the bound", token, "")
	checkVerdict(t, start(t, jwtclaims.Config{KeySet: path, MaxTokenBytes: len(token) - 1}), "beyond it", token, jwtclaims.ReasonOversized)
	checkVerdict(t, start(t, jwtclaims.Config{KeySet: path}), "a megabyte", strings.Repeat("x", 1<<20), jwtclaims.ReasonOversized)
}

func TestAttack_SeveralHeaders(t *testing.T) {
	v := start(t, jwtclaims.Config{KeySet: file(t, keySet(jwk("ed", edKey())))})
	r := request("Bearer "+good(t), "Bearer "+good(t))
	if got, ok := v.Attribute(r, policy.Attribute{Source: policy.SourceJWT, Name: "plan"}); ok {
		t.Errorf("two headers: got %q, want nothing", got)
	}
	if got := refusals(v)[jwtclaims.ReasonSeveralHeaders]; got != 1 {
		t.Errorf("counted %d times, want 1", got)
	}
}

// A flood of forged tokens makes no verified one be verified again, is logged in one
// line a minute, and never with a token.
func TestAttack_Flood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log testkit.Log
		v := start(t, jwtclaims.Config{KeySet: file(t, keySet(jwk("ed", edKey()))), CachedTokens: 4, Logger: log.Logger()})
		var tokens []string
		for i := range 4 {
			tokens = append(tokens, sign(t, "EdDSA", "ed", edKey(), claims(map[string]any{"jti": fmt.Sprint(i)})))
			claim(v, tokens[i], "plan")
		}
		forger := newEdKey()
		var floods sync.WaitGroup
		for i := range 4 {
			floods.Go(func() {
				for n := range 500 {
					forged := sign(t, "EdDSA", "ed", forger, claims(map[string]any{"jti": fmt.Sprint(i, "/", n)}))
					if got := claim(v, forged, "plan"); got != missing {
						t.Errorf("a forged token: got %q", got)
					}
					if got := claim(v, tokens[i], "plan"); got != "pro" {
						t.Errorf("a good one: got %q", got)
					}
				}
			})
		}
		floods.Wait()
		s := v.Stats()
		if s.Verified != 4 || s.Cached != 2000 || s.Rejected[jwtclaims.ReasonBadSignature] != 2000 {
			t.Errorf("%+v; want 4 verified, 2000 cached, 2000 refused", s)
		}
		if n := log.Count("bearer tokens rejected"); n != 1 {
			t.Errorf("logged %d times, want 1:\n%s", n, &log)
		}
		time.Sleep(time.Minute)
		claim(v, "x", "plan")
		if n := log.Count("bearer tokens rejected"); n != 2 || log.Count("malformed=1 ") != 1 {
			t.Errorf("a minute later, want one line with all since:\n%s", &log)
		}
		if n := sum(&log, "signature="); n != 2000 { // those of one instant are in the first line or in the second
			t.Errorf("%d of 2000 are in the log:\n%s", n, &log)
		}
		if log.Count("eyJ") != 0 {
			t.Errorf("a token is in the log:\n%s", &log)
		}
	})
}

// A refused token that is asked about for several claims is verified once.
func TestAttack_OneVerdictARequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := start(t, jwtclaims.Config{KeySet: file(t, keySet(jwk("ed", edKey())))})
		forged := sign(t, "EdDSA", "ed", newEdKey(), claims(nil))
		for _, name := range []string{"plan", "sub", "tenant"} {
			claim(v, forged, name)
		}
		if got := refusals(v)[jwtclaims.ReasonBadSignature]; got != 1 {
			t.Errorf("refused %d times, want 1", got)
		}
		time.Sleep(time.Second)
		claim(v, forged, "plan")
		if got := refusals(v)[jwtclaims.ReasonBadSignature]; got != 2 {
			t.Errorf("a second later: refused %d times, want 2", got)
		}
	})
}
