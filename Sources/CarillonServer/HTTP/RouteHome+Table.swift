extension RouteHome {
    /// The case of each route, by its name in ``Routes/names`` or ``Routes/externalNames``.
    static let table: [String: RouteHome] = [
        // Channels
        "POST /push/{token}": .tokenInPath,
        "GET /push/{token}": .tokenInPath,
        "PUT /push/{token}/watch": .tokenInPath,
        "GET /push/{token}/watch": .tokenInPath,
        "DELETE /push/{token}/watch": .tokenInPath,
        "GET /GNP1.0": .tokenInField,
        "POST /GNP1.0": .tokenInField,
        "PUT /GNP1.0": .tokenInField,
        "DELETE /GNP1.0": .tokenInField,
        "PATCH /GNP1.0": .tokenInField,
        "GET /_matrix/push/v1/notify": .process,
        // The token in the endpoint of each device.
        "POST /_matrix/push/v1/notify": .parts,

        // Messages
        "GET /message/{id}": .message,
        "DELETE /message/{id}": .message,
        "GET /v1/messages/{id}": .message,

        // Devices
        "GET /v1/server": .process,
        "POST /v1/devices": .newDevice,
        "GET /v1/device": .credential,
        "PUT /v1/device": .credential,
        "PATCH /v1/device": .credential,
        "DELETE /v1/device": .credential,
        "PUT /v1/device/credential": .credential,
        "POST /v1/device/badge/reset": .credential,
        "GET /v1/device/channels": .credential,
        "POST /v1/device/channels": .credential,
        "DELETE /v1/device/channels/{channel}": .credential,
        "GET /v1/inbox": .credential,
        "POST /v1/inbox": .credential,
        "POST /v1/inbox/results": .credential,
        "POST /v1/device/subscriptions": .credential,
        "GET /v1/device/subscriptions": .credential,
        "PUT /v1/device/subscriptions": .credential,
        "DELETE /v1/device/subscriptions": .credential,
        "GET /v1/device/subscriptions/{subscription}": .credential,
        "PATCH /v1/device/subscriptions/{subscription}": .credential,
        "DELETE /v1/device/subscriptions/{subscription}": .credential,

        // Services between apps: the home of the device that sends the request, even if it names another device.
        "PUT /v1/device/services": .credential,
        "DELETE /v1/device/services": .credential,
        "GET /v1/services": .credential,
        "GET /v1/services/icon": .credential,
        "POST /v1/services/requests": .credential,
        "DELETE /v1/services/requests": .credential,
        "DELETE /v1/services/requests/{request}": .credential,
        "POST /v1/services/requests/{request}/received": .credential,
        "POST /v1/services/requests/{request}/reply": .credential,

        // Devices, for operators
        "GET /v1/apps/{app}/devices": .store,
        "GET /v1/devices/{device}": .device,
        "DELETE /v1/devices/{device}": .device,
        "POST /v1/devices/{device}/suspend": .device,
        "POST /v1/devices/{device}/resume": .device,
        "POST /v1/devices/{device}/channels/{channel}/revoke": .device,
        "GET /v1/devices/{device}/subscriptions": .device,
        "GET /v1/devices/{device}/subscriptions/{subscription}/explanation": .device,
        "GET /v1/apps/{app}/servers": .store,
        "PUT /v1/apps/{app}/servers/{device}": .device,
        // The requests of the device end.
        "DELETE /v1/apps/{app}/servers/{device}": .device,

        // Items
        "GET /v1/items": .store,
        // The item of each line.
        "POST /v1/items/updates": .parts,
        "POST /v1/items/{item}/updates": .item,
        "GET /v1/items/{item}": .item,
        "DELETE /v1/items/{item}": .item,
        "GET /v1/apps/{app}/items": .registry,
        // Rules end subscriptions of devices in all shards. One home searches for them.
        "PUT /v1/apps/{app}/items": .appInPath,

        // Updates
        "POST /v1/updates": .appOfSender,
        "GET /v1/updates": .appOfSender,
        "POST /v1/updates/explain": .appOfSender,
        "GET /v1/updates/{update}": .appOfSender,
        "DELETE /v1/updates/{update}": .appOfSender,
        "GET /v1/updates/{update}/devices": .appOfSender,
        "POST /v1/updates/{update}/requeue": .appOfSender,
        "POST /v1/updates/{update}/resume": .appOfSender,
        "GET /v1/apps/{app}/audit": .appInPath,
        "GET /v1/apps/{app}/parameters": .registry,
        "PUT /v1/apps/{app}/parameters": .registry,

        // Attachments
        "POST /v1/attachments": .newAttachment,
        "OPTIONS /v1/attachments": .process,
        "GET /v1/attachments/{attachment}": .attachment,
        "PATCH /v1/attachments/{attachment}": .attachment,
        "PUT /v1/attachments/{attachment}": .attachment,
        "DELETE /v1/attachments/{attachment}": .attachment,

        // Apps and keys
        "POST /v1/apps": .registry,
        "GET /v1/apps": .registry,
        "DELETE /v1/apps/{app}": .appInPath,
        "POST /v1/keys": .registry,
        "GET /v1/keys": .registry,
        "POST /v1/keys/{key}/rotate": .registry,
        // With `devices=delete`, the devices that registered with the key are in all shards.
        "DELETE /v1/keys/{key}": .eachHome,

        // Settings of apps
        "GET /v1/apps/{app}/credentials": .registry,
        "PUT /v1/apps/{app}/credentials/{environment}": .registry,
        "DELETE /v1/apps/{app}/credentials/{environment}": .registry,
        "GET /v1/apps/{app}/alert": .registry,
        "PUT /v1/apps/{app}/alert": .registry,
        "DELETE /v1/apps/{app}/alert": .registry,
        "GET /v1/apps/{app}/users": .registry,
        "PUT /v1/apps/{app}/users": .registry,
        "DELETE /v1/apps/{app}/users": .registry,
        "GET /v1/apps/{app}/veto": .registry,
        "PUT /v1/apps/{app}/veto": .registry,
        "DELETE /v1/apps/{app}/veto": .registry,
        "GET /v1/apps/{app}/realm": .registry,
        "PUT /v1/apps/{app}/realm": .registry,
        "DELETE /v1/apps/{app}/realm": .registry,

        // Pushes
        // The test gateway stores only the pushes of its own process.
        "GET /v1/apps/{app}/pushes/test": .process,
        "GET /v1/apps/{app}/pushes/parked": .store,
        "POST /v1/apps/{app}/pushes/parked/requeue": .store,

        // The server
        "GET /health/live": .process,
        "GET /health/ready": .process,
        "GET /": .process,
        "OPTIONS /": .process,
    ]
}
