package nemesis

// OfClients are the presets that cut nothing but links of clients: all that can be cut where nodes reach each other past the network of the run.
func OfClients() []Preset { return []Preset{ClientsOfLeader, ClientsOfAll} }

// ClientsOfLeader cuts half of the clients off from a leader.
var ClientsOfLeader = Preset{
	Name:  "clients-of-leader",
	Why:   "Half of the clients lose a leader that everybody else keeps: what was under way may have been written, and there is nobody else to ask.",
	Steps: []PresetStep{{Kind: Partition, Role: RoleLeader, Shape: ClientLink, For: sessions(0.3, 1.2)}},
}

// ClientsOfAll cuts half of the clients off from everybody.
var ClientsOfAll = Preset{
	Name:  "clients-of-all",
	Why:   "Half of the clients lose the whole cluster, and come back with what they had open.",
	Steps: []PresetStep{{Kind: Partition, Role: RoleAll, Shape: ClientLink, For: sessions(0.3, 1)}},
}
