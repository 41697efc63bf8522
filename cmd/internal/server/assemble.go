// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/metehq/mete"
	"github.com/metehq/mete/ai"
	"github.com/metehq/mete/api"
	"github.com/metehq/mete/cmd/internal/buildinfo"
	"github.com/metehq/mete/cmd/internal/clientfacts"
	"github.com/metehq/mete/cmd/internal/config"
	"github.com/metehq/mete/cmd/internal/metrics"
	"github.com/metehq/mete/cmd/internal/telemetry"
	"github.com/metehq/mete/httpapi"
	"github.com/metehq/mete/overrides"
	"github.com/metehq/mete/policy"
)

// An assembly holds the parts of a server while [New] creates them. Optional parts add hooks.
type assembly struct {
	*Server
	config config.Config

	onDecision       []func(context.Context, *mete.Decision)
	onDenial, onNear []denialHook
	onPolicy         []func(*policy.Matcher) // called when a policy becomes active
	alsoRead         []policy.Attribute      // attributes that the hooks read
	live             httpapi.Live
	ratios           *ai.Ratios
	top              httpapi.Top
}

// A denialHook is called for denials, or for requests near a limit.
type denialHook = func(context.Context, *mete.Denial)

// add adds a component. It may depend on all components before it.
func (a *assembly) add(c component) { a.components = append(a.components, c) }

// assemble opens all parts of the server in the order of their dependencies.
func (a *assembly) assemble(ctx context.Context) error {
	c := a.config
	a.add(watchdog(a.log))
	store, err := a.openBuckets(ctx, c.Store)
	if err != nil {
		return err
	}
	if c.Violations != nil {
		if err := a.addViolations(ctx); err != nil {
			return err
		}
	}
	facts, closeFacts, err := clientfacts.Open(c.GeoIP, a.log, settingName)
	if err != nil {
		return err
	}
	a.add(newCloser("facts about clients", closeFacts))
	source := newSource(c, policy.Options{HashKey: store.key, Facts: facts}, a.log, a.reloads.count)
	a.add(newCloser("policy source", source.close))
	m, err := source.load(ctx)
	if err != nil {
		return err
	}
	a.addBundle(source)
	claims, err := a.openClaims(ctx)
	if err != nil {
		return err
	}
	watch, err := a.openTelemetry(ctx)
	if err != nil {
		return err
	}
	adapt, err := newAdaptation(c.Adaptive)
	if err != nil {
		return err
	}
	a.countDecisions(store, watch)
	if err := cmp.Or(a.addTop(store), a.countAI()); err != nil {
		return err
	}
	a.addDenialLog(store)
	a.addDenialWebhook(store)

	if a.limiter, err = a.newLimiter(m, store, adapt); err != nil {
		return err
	}
	if store.kind.Shared {
		a.add(store.recovery(a.limiter))
	}
	manager, err := a.openOverrides(ctx, m, store)
	if err != nil {
		return err
	}
	a.onPolicy = append(a.onPolicy, a.metrics.SetPolicy, a.lintPolicy, a.warnClaims, a.warnResponses, a.warnSlots)
	a.addExpiry()
	a.add(newFollowerComponent(source.follower(func(m *policy.Matcher) error {
		if err := manager.SetBase(m); err != nil {
			return err
		}
		a.callOnPolicy(m)
		return nil
	}), a.reloads))
	if err := a.openListeners(store, source, manager, claims, adapt, watch); err != nil {
		return err
	}
	a.callOnPolicy(m)
	return nil
}

// settingName returns the name of a setting as mete.yaml has it.
func settingName(name string) string { return name }

func (a *assembly) newLimiter(m *policy.Matcher, b *buckets, adapt adaptation) (*mete.Limiter, error) {
	c := mete.Config{
		OnDecision: func(ctx context.Context, d *mete.Decision) { callAll(ctx, a.onDecision, d) },
		Local:      b.local, Nodes: b.opened.Nodes, Scale: adapt.scale,
		OnSettlement: a.countSettlements(),
		OnHold:       func(_ context.Context, op, result string) { a.metrics.CountHold(op, result) },
	}
	if len(a.onDenial) > 0 {
		c.OnDenial = func(ctx context.Context, d *mete.Denial) { callAll(ctx, a.onDenial, d) }
	}
	if len(a.onNear) > 0 {
		c.OnNearLimit = func(ctx context.Context, d *mete.Denial) { callAll(ctx, a.onNear, d) }
	}
	if b.kind.Shared && a.config.DenialCache {
		c.DenyFor = denyFor
	}
	limiter, err := mete.New(b.Store, m, c)
	if err != nil {
		return nil, err
	}
	a.metrics.Add(metrics.Limiter(limiter.Stats), metrics.Policy(limiter.Policy), metrics.PolicyReloads(a.reloads.stats),
		metrics.Nodes(b.opened.Nodes), metrics.Build(buildinfo.Read))
	if b.kind.Shared {
		a.metrics.Add(metrics.Guard(b.guard.Stats), metrics.DeniedFromMemory(limiter.Stats))
	}
	return limiter, nil
}

func callAll[D any](ctx context.Context, hooks []func(context.Context, D), d D) {
	for _, hook := range hooks {
		hook(ctx, d)
	}
}

// callOnPolicy calls the hooks for a policy that became active.
func (a *assembly) callOnPolicy(m *policy.Matcher) {
	for _, tell := range a.onPolicy {
		tell(m)
	}
}

// openOverrides activates the stored overrides. If a shared store is unreachable, the server starts without
// overrides and loads them later, because other servers may be using them. If a local file is damaged, the server
// does not start.
func (a *assembly) openOverrides(ctx context.Context, base *policy.Matcher, b *buckets) (*overrides.Manager, error) {
	documents := b.opened.Documents()
	if b.kind.Shared {
		documents = b.guard
	}
	m, err := overrides.New(base, overrides.Config{Documents: documents, Apply: a.limiter.SetPolicy, Cleared: a.dropRule, Logger: a.log})
	if err != nil {
		return nil, err
	}
	if err := m.Load(ctx); err != nil {
		if !b.kind.Shared {
			return nil, fmt.Errorf("%s: %w; repair it, or move it away to start without overrides", b.url.File+"."+overrides.DefaultName, err)
		}
		b.log.Error("cannot read overrides, none active", "err", err)
	}
	a.add(background("overrides", m.Follow))
	a.metrics.Add(metrics.Overrides(m.CountActive))
	a.logOverrides(m)
	return m, nil
}

// dropRule drops the cached state of a rule after another server has reset it.
func (a *assembly) dropRule(rule string) {
	if err := a.limiter.DropRule(context.Background(), rule); err != nil {
		a.log.Error("cannot drop cached buckets of a reset rule", "rule", rule, "err", err)
		return
	}
	a.log.Info("rule reset", "rule", rule)
}

func (a *assembly) logOverrides(m *overrides.Manager) {
	var ids []string
	for _, o := range m.List() {
		if o.State != overrides.StateActive {
			continue
		}
		if o.Source == overrides.SourceFile {
			ids = append(ids, o.ID)
		}
		if o.Action.Kind().Suspends {
			a.log.Warn("all limits suspended by an override", "id", o.ID, "action", string(o.Action),
				"author", o.Author, "reason", o.Reason, "expires_at", o.ExpiresAt)
		}
	}
	if len(ids) > 0 {
		a.log.Info("policy overrides active", "ids", strings.Join(ids, ","))
	}
}

// openListeners opens all addresses. It adds the main listener last, which therefore stops first: /readyz on the
// admin address answers until the end.
func (a *assembly) openListeners(b *buckets, source source, manager *overrides.Manager, claims claimReader, adapt adaptation, watch *telemetry.Watch) error {
	c := a.config
	adminSocket, err := a.openSocket("admin-listen", c.AdminListen, adminConnections, c.AdminTLS, httpProtocols...)
	if err != nil {
		return err
	}
	mainSocket, err := a.openSocket("listen", c.Listen, c.MaxConnections, c.TLS, httpProtocols...)
	if err != nil {
		return err
	}
	a.admin, a.main = adminSocket.Addr(), mainSocket.Addr()
	access, err := a.openAccess()
	if err != nil {
		return err
	}
	door := httpapi.Config{Gateway: a.newDecisionGateway(b, claims), MaxWait: c.MaxWait, AlsoRead: a.alsoRead, Ready: a.checkReady, Bundle: func() *api.Bundle { return bundleOf(source) }}
	admin, err := a.adminListener(adminSocket, door, b, source, manager, access, watch)
	if err != nil {
		return err
	}
	main, err := a.mainListener(mainSocket, door, b, claims, adapt, watch)
	if err != nil {
		return err
	}
	a.metrics.Add(metrics.AtListener(admin.stats), metrics.AtListener(main.stats))
	a.add(a.newListenerComponent(admin.name, admin, adminGrace))
	if err := a.addGRPC(b, claims, access, watch); err != nil {
		return err
	}
	if err := a.addRESP(access); err != nil {
		return err
	}
	a.add(a.newListenerComponent(main.name, main, 0))
	return nil
}
