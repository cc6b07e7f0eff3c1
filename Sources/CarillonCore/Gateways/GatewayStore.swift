package import CarillonWire

/// The credentials and the alert text with which apps push. Methods that write are atomic and durable, as ``Store`` describes.
package protocol GatewayStore: Sendable {
    /// Stores the credential of an app for an environment, and replaces the present one whole. The last of several calls at once counts.
    ///
    /// - Returns: False if there is no such app, or it was deleted.
    func putCredential(_ credential: GatewayCredential) async throws -> Bool
    /// Returns the credentials of an app, or of all apps for nil, ordered by app and environment, without those of deleted apps.
    func credentials(of app: AppID?) async throws -> [GatewayCredential]
    /// Removes a credential, and returns its lane; nil if there was none. Of calls at once, one returns the lane.
    func removeCredential(of app: AppID, for environment: PushEnvironment) async throws -> PushLane?
    /// Stores the alert text of an app as a JSON document, and replaces the present one whole; nil removes it. Alerts that are leased
    /// after the call use the new text.
    ///
    /// - Returns: The app; nil if there is no such app, or it was deleted.
    func putAlert(_ document: String?, of app: AppID) async throws -> AppSerial?
    /// Returns the alert text of an app; nil if there is none.
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
