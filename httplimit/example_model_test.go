// SPDX-License-Identifier: Apache-2.0

package httplimit_test

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/metehq/mete"
	"github.com/metehq/mete/httplimit"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/policy"
)

func ExampleModelTransport() {
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { chatAnswer(w) }))
	defer provider.Close()

	budget, err := policy.Load([]byte(`{"name": "chat", "limit_keys": ["ai:model"], "on_missing": "deny", "algorithm": "token_bucket_llm",
		"tokens_per_minute": 100, "tokens_per_day": 2000000}`), policy.Options{})
	if err != nil {
		log.Fatal(err)
	}
	store, err := memstore.New(memstore.Config{}) // with redisstore or pgstore, processes share the budget
	if err != nil {
		log.Fatal(err)
	}
	limiter, err := mete.New(store, budget, mete.Config{})
	if err != nil {
		log.Fatal(err)
	}
	transport, err := httplimit.NewModelTransport(limiter, httplimit.ModelTransportConfig{MaxWait: -1})
	if err != nil {
		log.Fatal(err)
	}
	client := &http.Client{Transport: transport}
	for _, longest := range []int{50, 50, 200} {
		body := fmt.Sprintf(`{"model": "m", "max_tokens": %d, "messages": [{"role": "user", "content": "Hello"}]}`, longest)
		res, err := client.Post(provider.URL+"/v1/chat/completions", "application/json", strings.NewReader(body))
		if denied, ok := errors.AsType[*httplimit.DeniedError](err); ok {
			fmt.Println("denied:", denied.Decision.Reason)
			continue
		}
		if err != nil {
			log.Fatal(err)
		}
		_, err = io.Copy(io.Discard, res.Body)
		res.Body.Close()
		fmt.Println(res.Status, err)
	}
	// Output:
	// 200 OK <nil>
	// 200 OK <nil>
	// denied: tpm_exceeded
}
