import CarillonWire

/// What was said to the server once is said again when the server does not have it any more: it was restored from a backup. It says with each
/// connection what it has, by the names that this install gave to it.
extension ClientSession {
    /// Whether the server stores revisions.
    var namesRevisions: Bool { knownServer.history != nil }

    /// Compares what the server has with what was reported to it.
    mutating func compare(with carillon: ServerFrame.Hello.Carillon) -> [SessionAction] {
        let before = knownServer.history
        knownServer.history = carillon.history
        guard let history = carillon.history else { return [] }
        let isRestored = before.map { $0 != history } ?? false
        let hasLost = device.serverHas(carillon.deviceRevision, isRestored: isRestored)
        if isRestored || hasLost { knownServer.mayHaveLostSubscriptions = true }
        return [.notifyServicesRevision(carillon.servicesRevision, isRestored: isRestored || hasLost)]
    }
}
