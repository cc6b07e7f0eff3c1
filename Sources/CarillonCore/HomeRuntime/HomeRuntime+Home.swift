/// A home of this process does each call itself, and throws no ``HomeFault``.
extension HomeRuntime: Home {
    package func arrive(
        _ name: DeviceName, _ proof: DeviceProof, _ load: InboxLoad, speaking version: Int, as session: any LiveSession
    ) async throws(HomeFault) -> Arrived {
        do {
            guard let arrived = try await arrival(of: name, proof, as: session, load) else { return .notKnown }
            // Nothing follows the arrival of a session that lost its place to a newer one.
            if sessions.session(of: arrived.device.serial) === session {
                arrivalListener?.arrived(arrived.device, version, session)
            }
            return .device(arrived)
        } catch {
            return .failed(error as? StoreFault ?? StoreFault(.unavailable, "\(error)"))
        }
    }

    package func read(_ load: InboxLoad, of device: DeviceSerial) async throws(HomeFault) -> Result<InboxRead, StoreFault> {
        await inbox.read(device, load)
    }

    package func settle(_ answer: EnvelopeAnswer, of device: DeviceSerial) {
        inbox.settle(answer.id, device: device, answer.outcome, code: answer.code)
    }

    package func leave(_ session: any LiveSession, of device: DeviceSerial) { sessions.leave(session, device: device) }

    /// Searches all sessions: the device can have another name since its session joined.
    package func leave(_ session: any LiveSession, of name: DeviceName) { sessions.leave(session) }
}
