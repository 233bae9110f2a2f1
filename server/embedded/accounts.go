package embedded

import (
	"slices"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/server/login"
)

// service is a subject that ASP answers for another account.
type service struct {
	Subject string
	Answers server.ServiceRespType
}

// The services that each account imports from ASP, under the same subjects.
//
// Two subjects of one account must not overlap: a request would be delivered once for each.
//
// A client may name one of these subjects as the reply subject of a pull or a request. With a
// wildcard in the subject, the reply stays in the client's account. Without one, the server
// forwards it to ASP. So subjects that are imported without a wildcard must be read-only.
func principalServices(shards int) []service {
	services := []service{
		{"asp.agent.*.submit.*", server.Singleton},
		{"asp.agent.*.api.*.*", server.Singleton},
	}
	for _, stream := range pulled(shards) {
		services = append(services, service{"$JS.API.CONSUMER.INFO." + stream + ".*", server.Singleton},
			service{"$JS.API.CONSUMER.MSG.NEXT." + stream + ".*", server.Streamed},
			service{"$JS.ACK." + stream + ".*.>", server.Singleton})
	}
	return append(services,
		// No principal may use it. But without this import the server would answer every
		// request on "$JS.API.>" of this account with "JetStream not enabled", ahead of the
		// true answer.
		service{"$JS.API.INFO", server.Singleton})
}

// pulled are the streams that principals pull from.
func pulled(shards int) (streams []string) {
	for n := range max(1, shards) {
		streams = append(streams, api.ShardName(api.InboxStream, n))
	}
	return append(streams, api.EscalationsStream)
}

// devServices are those of development: any client may act as anyone, and use the read-only JetStream API.
func devServices(shards int) []service {
	services := []service{
		{"asp.agent.*.submit.*", server.Singleton},
		{"asp.agent.*.api.*.*", server.Singleton},
		{"asp.operator.api.*.*", server.Singleton},
		{"$SRV.>", server.Streamed},
	}
	for _, stream := range pulled(shards) {
		services = append(services, service{"$JS.API.CONSUMER.MSG.NEXT." + stream + ".*", server.Streamed}, service{"$JS.ACK." + stream + ".*.>", server.Singleton})
	}
	return append(slices.Concat(services, inspections()), service{"$JS.API.CONSUMER.INFO.>", server.Singleton})
}

// inspections are the requests of JetStream by which nothing can be changed or read of a message.
func inspections() (services []service) {
	for _, subject := range login.Inspections {
		services = append(services, service{subject, server.Singleton})
	}
	return services
}

var (
	operatorServices = append([]service{
		{"asp.operator.api.*.*", server.Singleton},
		{"$SRV.>", server.Streamed}, // every replica answers
	}, inspections()...)
	// A wakeup is a request of the broker to a subject that a principal may subscribe to. So ASP, and it
	// alone, imports the reply inboxes of PRINCIPALS as a service, under a name that is not that of its own.
	// The principal answers on a reply subject that the server makes.
	wakeups = called{login.PrincipalsAccount, api.Inboxes + ">", api.Wakeups + ">"}

	monitorStreams   = append([]string{"asp.event.>", "asp.escalation.>"}, login.Elections...)
	principalStreams = []string{"asp.discovery.>"}
)

// called is a subject of an account that ASP imports as a service, under a local name.
type called struct{ Account, Subject, Local string }

func subjects(services []service) []string {
	var all []string
	for _, s := range services {
		all = append(all, s.Subject)
	}
	return all
}

// access is what an account imports from ASP.
type access struct {
	Account  string
	Services []service // that it may call
	Streams  []string  // that it may subscribe to
}

// production is what each account imports where there are logins.
func production(shards int) []access {
	return []access{
		{login.PrincipalsAccount, principalServices(shards), principalStreams},
		{login.OperatorsAccount, operatorServices, monitorStreams},
	}
}

// An export is a subject of ASP, and the accounts that import it.
type export struct {
	service
	Stream   bool // it is subscribed to, not called
	Accounts []string
}

// exports are what accounts import, each subject once.
func exports(all []access) (once []*export) {
	add := func(account string, s service, stream bool) {
		at := slices.IndexFunc(once, func(e *export) bool { return e.Subject == s.Subject })
		if at < 0 {
			at, once = len(once), append(once, &export{service: s, Stream: stream})
		}
		once[at].Accounts = append(once[at].Accounts, account)
	}
	for _, may := range all {
		for _, s := range may.Services {
			add(may.Account, s, false)
		}
		for _, subject := range may.Streams {
			add(may.Account, service{Subject: subject}, true)
		}
	}
	return once
}

func development(shards int) []access {
	return []access{{login.PrincipalsAccount, devServices(shards), slices.Concat(monitorStreams, principalStreams)}}
}

// accounts are those of a server in development, which is in config mode. Their names are their
// keys in operator mode, so that JetStream finds the same streams in both modes.
type accounts map[string]*server.Account

func (a accounts) all() []*server.Account {
	var all []*server.Account
	for _, name := range login.Accounts {
		all = append(all, a[name])
	}
	return all
}

func newAccounts(authority *login.Authority, all []access) (accounts, error) {
	a := accounts{}
	for _, name := range login.Accounts {
		a[name] = server.NewAccount(authority.Account(name))
	}
	for _, may := range all {
		if err := a.open(may); err != nil {
			return nil, err
		}
	}
	asp, by := a[login.BrokerAccount], a[wakeups.Account]
	if err := by.AddServiceExport(wakeups.Subject, []*server.Account{asp}); err != nil {
		return nil, err
	}
	return a, asp.AddServiceImport(by, wakeups.Local, wakeups.Subject)
}

// open exports services and streams of ASP to an account, which imports them.
func (a accounts) open(may access) error {
	asp, to := a[login.BrokerAccount], a[may.Account]
	only := []*server.Account{to}
	for _, s := range may.Services {
		if err := asp.AddServiceExportWithResponse(s.Subject, s.Answers, only); err != nil {
			return err
		}
		if err := to.AddServiceImport(asp, s.Subject, s.Subject); err != nil {
			return err
		}
	}
	for _, subject := range may.Streams {
		if err := asp.AddStreamExport(subject, only); err != nil {
			return err
		}
		if err := to.AddStreamImport(asp, subject, ""); err != nil {
			return err
		}
	}
	return nil
}
