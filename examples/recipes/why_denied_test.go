// SPDX-License-Identifier: Apache-2.0

package recipes_test

import (
	"context"
	"fmt"

	"github.com/metehq/mete"
	"github.com/metehq/mete/httpapi"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/policy"
)

// A user asks why they are limited. Explain shows the decision about their next request, rule by rule, and spends
// nothing. The command line has mete explain.
func Example_whyDenied() {
	c := newClock()
	matcher := must(policy.Load([]byte(tiers), policy.Options{}))
	store := must(memstore.New(memstore.Config{Now: c.Now}))
	limiter := must(mete.New(store, matcher, mete.Config{Now: c.Now}))

	request := mete.Request{Attributes: mete.Attrs{"header:x-api-key": "k1", "plan": "pro"}}
	for range 20 {
		must(limiter.Take(context.Background(), request))
	}
	e := must(limiter.Explain(context.Background(), request))
	answer := httpapi.ExplanationOf(&e) // in words; e itself has it all for programs
	fmt.Println(answer.Why)
	fmt.Println("passes at", answer.PassesAt.Format("15:04:05.999"))
	for _, rule := range answer.Rules {
		fmt.Printf("%s: %s\n", rule.Name, rule.Why)
	}
	// Output:
	// denied by rule free: 0 of 20 tokens left, and it costs 1
	// passes at 12:00:00.1
	// enterprise: plan is "pro", and the rule wants "enterprise"
	// free: applies, and denies it
	// everyone: applies, and allows it
}
