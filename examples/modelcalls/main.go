// SPDX-License-Identifier: Apache-2.0

// Command modelcalls calls a language model within a budget. Its HTTP client reserves the tokens of each request, settles the usage
// that the provider reports, and waits while the provider accepts no requests. Clients in other processes share budget
// and pace if they share the store.
//
// OPENAI_BASE_URL is the address of the provider, and OPENAI_API_KEY the key.
package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"

	"github.com/metehq/mete"
	"github.com/metehq/mete/httplimit"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/policy"
)

// budget is 2,000 tokens per minute and 100,000 per day for each team.
const budget = `{"rules": [{
	"name": "team", "limit_keys": ["custom:team"], "on_missing": "deny", "match": {"ai:model": "*"},
	"algorithm": "token_bucket_llm", "tokens_per_minute": 2000, "tokens_per_day": 100000, "default_max_completion": 500}]}`

func main() {
	base := cmp.Or(os.Getenv("OPENAI_BASE_URL"), "https://api.openai.com/v1")
	if err := run(context.Background(), base, os.Getenv("OPENAI_API_KEY")); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, base, key string) error {
	// With redisstore or pgstore, all processes share the budget.
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		return err
	}
	client, err := newClient(store)
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	for _, q := range []struct{ team, text string }{
		{"search", "What is a token bucket?"}, {"search", "What is a leaky bucket?"}, {"search", "Write a book about buckets."}, {"support", "Hello!"},
	} {
		answer, err := ask(withTeam(ctx, q.team), client, base, key, q.text)
		if denied, ok := errors.AsType[*httplimit.DeniedError](err); ok {
			fmt.Printf("%s: denied by %s: %s\n", q.team, denied.Decision.Rule, denied.Decision.Reason)
			continue
		}
		if err != nil {
			return err
		}
		fmt.Printf("%s: %s\n", q.team, answer)
	}
	return nil
}

// newClient returns a client that spends the budget. It also fits into the SDKs of the providers.
func newClient(store mete.Store) (*http.Client, error) {
	m, err := policy.Load([]byte(budget), policy.Options{})
	if err != nil {
		return nil, err
	}
	limiter, err := mete.New(store, m, mete.Config{})
	if err != nil {
		return nil, err
	}
	transport, err := httplimit.NewModelTransport(limiter, httplimit.ModelTransportConfig{
		MaxWait: -1, // this program does not wait
		Attribute: func(r *http.Request, a policy.Attribute) (string, bool) {
			team, ok := r.Context().Value(teamKey{}).(string)
			return team, ok && a.String() == "custom:team"
		},
	})
	return &http.Client{Transport: transport}, err
}

type teamKey struct{}

// withTeam sets the team that pays for a request.
func withTeam(ctx context.Context, team string) context.Context {
	return context.WithValue(ctx, teamKey{}, team)
}

func ask(ctx context.Context, client *http.Client, base, key, text string) (string, error) {
	body, err := json.Marshal(map[string]any{"model": "gpt-4o-mini", "messages": []any{map[string]string{"role": "user", "content": text}}})
	if err != nil {
		return "", err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/chat/completions", bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+key)
	res, err := client.Do(r)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	var answer struct {
		Choices []struct {
			Message struct{ Content string }
		}
	}
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil || len(answer.Choices) == 0 {
		return "", fmt.Errorf("status %s: no answer (%w)", res.Status, err)
	}
	return answer.Choices[0].Message.Content, nil
}
