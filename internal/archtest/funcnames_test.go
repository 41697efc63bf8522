// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"fmt"
	"go/ast"
	"strings"
)

// riddles are words that are no function names by themselves: a reader of the call
// cannot tell what it does. They may be parts of a name: lockRows, isExpired, withTimeout.
var riddles = wordSet(
	// prepositions, conjunctions and adverbs
	`about absent after again ago alone always and apart as aside at away back because before behind below beside between but by certainly
	down else elsewhere ever except exactly few for forth forward from further here how if in inside instead into lately later less more
	most much near never of off often on once onceMore only onto otherwise out outside over past perhaps plainly rather so
	soon still than then there through till to together too toward under up upon very when whence where while whole why with within
	without yet`,
	// pronouns and determiners
	`another any both each either every everything it least many mine neither nobody none nothing one other others own same several
	some somebody something such that their theirs these this those two us we what which who whose`,
)

// conditions are words that name a function only if it returns a bool: expired, closed.
var conditions = wordSet(
	// adjectives
	`bare brief clean common early earliest endless equal exclusive fewest fresh full general idempotent immediate implausible
	infinite late latest legible likely live local lone loud mutual narrow natural needy new notable old original plausible
	plain printable proper quiet raw ready sane sendable serial similar simple single slow slower sound spare special
	spendable steady stray strict stricter strictest sure tentative true unfit usable vacant whole wide worst`,
	// participles and past tenses
	`accepted activated added admitted agreed aligned allowed answered applied asked asking authored banished become begun believed borne
	bounded bought broken brought built called canceled caught chained charged checked chosen claimed closed closing compared concerned
	connected consumed converted counted covered decided denied derived described disputed distributed done drawn dropped emptied ended
	escaped excused expected expired explained failed failing fallen filled finished followed following forgotten found given gone granted
	grouped grown guarded handed hashed heard held hidden ignored imported included joined judged kept known lacked lacking lasting lent
	listed listening living loaded locked lost lowered made marked masked matched mentioned met missed missing moved moving named
	narrowed needed noticed opened outdated overflowed overlapping owed owing paid paired permitted placed postponed preempted
	proxied published quoted raised reached reclaimed recognized recorded refilled refused released removed replaced
	reported requested resolved retried returned revived said saved scaled seen selected sent settled shared shown sorted spared spelled
	spent spoiled spoken stalled started stepped stopped stored taken tagged taught thrown timed told truncated trusted unanswered
	unchecked uncounted undecided undefined undone unexpected unlinked unlisted unmatched unread unsent unstored used verified violated
	waited waiting wanted warned written`,
)

func wordSet(lists ...string) map[string]bool {
	set := map[string]bool{}
	for _, list := range lists {
		for word := range strings.FieldsSeq(list) {
			set[word] = true
		}
	}
	return set
}

// checkFunctionNames looks at unexported functions outside of tests.
func checkFunctionNames(t *tree) []finding {
	var found []finding
	for _, f := range t.files {
		if f.isTest() {
			continue
		}
		for _, d := range f.syntax.Decls {
			fn, isFunc := d.(*ast.FuncDecl)
			if isFunc && (riddles[fn.Name.Name] || conditions[fn.Name.Name] && !returnsBool(fn)) {
				found = append(found, finding{t.at(fn.Pos()), fmt.Sprintf(
					"name the function %s by a verb and an object (lockRows, retryLocked), by the noun that it returns, or isX", fn.Name.Name)})
			}
		}
	}
	return found
}

// returnsBool reports whether a bool is the only result of a function.
func returnsBool(fn *ast.FuncDecl) bool {
	results := fn.Type.Results
	if results.NumFields() != 1 {
		return false
	}
	id, isIdent := results.List[0].Type.(*ast.Ident)
	return isIdent && id.Name == "bool"
}
