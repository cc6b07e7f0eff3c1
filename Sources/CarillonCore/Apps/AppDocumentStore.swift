/// The settings of apps, and the version of the registry. Methods that write are atomic and durable, as ``Store`` describes.
///
/// The registry consists of apps, keys, the key ring, documents of apps, and the id and the history of the server. Each change of it
/// increments the version in the transaction of the change. Setting or removing the place of a device in a service cluster increments the
/// version, too; deleting the device does not. A call that changes nothing leaves the version as it is.
package protocol AppDocumentStore: Sendable {
    /// Returns the version of the registry. A call that begins after a change was returned returns the version of that change or a later
    /// one.
    func registryVersion() async throws -> RegistryVersion
    /// Returns a document; nil if the app has no document of this kind, or was deleted.
    func document(_ key: AppDocument.Key) async throws -> AppDocument?
    /// Returns the apps that have documents of a kind, in the order of their names, without deleted apps.
    func apps(with kind: AppDocument.Kind) async throws -> [App]
    /// Stores a document, and replaces the present one completely. The last of several concurrent calls takes effect.
    ///
    /// - Returns: The version of the document, which is later than all versions before; nil if there is no such app, or it was deleted.
    func putDocument(_ bytes: [UInt8], as key: AppDocument.Key, at now: Timestamp) async throws -> RegistryVersion?
    /// Removes a document. Returns false if the document did not exist. Of concurrent calls, one returns true.
    func removeDocument(_ key: AppDocument.Key) async throws -> Bool
}
