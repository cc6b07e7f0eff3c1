import CarillonWire

extension ClientSession {
    /// The version of Carillon's extension that brings them by itself.
    static let servicesSince = 6

    /// Something about a request of a service came. It is looked at beside the session, once it is stored.
    ///
    /// - Parameter answered: What the server was notified of it before, when it came before.
    func serviceReceived(_ frame: ServiceFrame, answered: Int?) -> [SessionAction] {
        if let answered { return [.send(MessageAnswer(id: frame.version, code: answered).frame)] }
        let answer = MessageAnswer(id: frame.version, code: ResultCode.delivered)
        return [
            .write(.saveServiceEvent(frame.body)), .write(.saveAnswer(answer)),
            .send(answer.frame), .notifyServices,
        ]
    }
}
