package import CarillonWire

/// Keeps what apps push with.
package protocol GatewayStore: Sendable {
    /// Sets the credentials of an app for an environment, in place of those before. Answers false when
    /// there is no such app any more.
    func putCredential(_ credential: GatewayCredential) async throws -> Bool
    /// All there are, those of one app when it is named.
    func credentials(of app: AppID?) async throws -> [GatewayCredential]
    /// Answers the lane that has none any more; nil when there was none.
    func removeCredential(of app: AppID, for environment: PushEnvironment) async throws -> PushLane?
    /// Sets what an app shows for a message that its vendor must not read, as a JSON document; nil takes it away. Answers nil
    /// when there is no such app.
    func putAlert(_ document: String?, of app: AppID) async throws -> AppSerial?
    func alert(of app: AppSerial) async throws -> String?
}

package struct GatewayCredential: Equatable, Sendable {
    package var app: AppID
    package var lane: PushLane
    package var sealed: [UInt8]
    /// For those who list credentials: no secret is in it.
    package var summary: String
    package var setAt: Timestamp

    package init(app: AppID, lane: PushLane, sealed: [UInt8], summary: String, setAt: Timestamp) {
        self.app = app
        self.lane = lane
        self.sealed = sealed
        self.summary = summary
        self.setAt = setAt
    }
}
