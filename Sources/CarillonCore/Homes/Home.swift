/// A home, as connections use it. The home can be in this process or in another one.
///
/// A socket or an event stream is the session of its device at the home. The home calls the session (``LiveSession``), also
/// before ``arrive(_:_:_:speaking:openedAt:as:)`` returns. A feature uses its own home as a ``LocalHome``.
///
/// A call about a session takes effect after the earlier calls about the session, also if an earlier call failed. A session can
/// leave only after its arrival has returned or failed.
package protocol Home: AnyObject, Sendable {
    /// Connects a device: reads the device with the first envelopes of its inbox, checks the proof, and makes the connection its
    /// session. If the device has two sessions then, the one whose connection was opened first ends with ``SessionEnd/replaced``.
    ///
    /// A session whose device has moved arrives at the new home with the same opening time, so that a newer session stays.
    ///
    /// - Parameters:
    ///   - version: The version of Carillon's extension of the protocol that the connection uses; 0 for Mozilla's protocol alone.
    ///   - openedAt: The time at which the connection was opened. A call that is repeated at another home has the same time.
    /// - Throws: ``HomeFault``. After ``HomeFault/outcomeUnknown``, the caller must call ``leave(_:of:)`` with the name of the
    ///   device.
    func arrive(
        _ name: DeviceName, _ proof: DeviceProof, _ load: PageRequest, speaking version: Int, openedAt: OpeningTime,
        as session: any LiveSession
    ) async throws(HomeFault) -> Arrived
    /// Reads an inbox. Each envelope that was queued for the device before the call is found.
    func read(_ load: PageRequest, of device: DeviceSerial) async throws(HomeFault) -> Result<InboxRead, StoreFault>
    /// Finishes an envelope for which a device reported a result. A result that cannot be written is kept and written later. If
    /// too many results are kept, the device's session ends.
    func finish(_ answer: EnvelopeAnswer, of device: DeviceSerial)
    /// Removes a session that ended. A newer session of the device stays. An unknown session is ignored.
    func leave(_ session: any LiveSession, of device: DeviceSerial)
    /// Removes a session whose arrival ended with ``HomeFault/outcomeUnknown``. The caller may not have the serial of the device
    /// then.
    ///
    /// A link to a home in another process keeps the serial of a device that arrived until the answer was delivered. For this
    /// call, the end of the link at the home removes the session by the serial. A home in this process searches all its sessions.
    /// The search takes longer with more connected devices, so a caller must use this method only as a last resort.
    func leave(_ session: any LiveSession, of name: DeviceName)

    /// Runs a whole request. If the task is cancelled, the request ends.
    ///
    /// - Throws: ``HomeFault``. Before ``HomeFault/moved(to:)`` and ``HomeFault/unreachable``, no part of a streamed body was
    ///   read.
    func handle(_ request: HomeRequest) async throws(HomeFault) -> HomeResponse
    /// Sends a request to a feature of the home.
    ///
    /// - Returns: The answer, or the error that the feature threw: ``Refusal`` or ``StoreFault``.
    func ask<Question: HomeQuestion>(_ question: Question) async throws(HomeFault) -> Result<Question.Answer, any Error>
}

extension Home {
    /// Connects a device by a connection that is opened now.
    package func arrive(
        _ name: DeviceName, _ proof: DeviceProof, _ load: PageRequest, speaking version: Int, as session: any LiveSession
    ) async throws(HomeFault) -> Arrived {
        try await arrive(name, proof, load, speaking: version, openedAt: .now(), as: session)
    }
}
